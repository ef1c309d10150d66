"""Measure how fast a served model reads and writes: `python -m benchmarks.serving_speed --model NAME`.

Reading: tokens a second of one prompt that is new to the server. Writing: seconds of a step, in which all
requests under way get a token each, from the difference between replies of one token and of nine. The last
line of the output is a JSON object.
"""

from __future__ import annotations

import asyncio
import json
import random
import time

from openai import AsyncOpenAI

from benchmarks.command import build_parser
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.agents.serving.server import serve

PROMPT_WORDS = (256, 512)
REQUESTS = (1, 2, 4, 8, 16)
STEPS = 8
WORDS = ("law", "court", "claim", "bank", "loan", "money", "fee", "date", "time", "road", "plant", "water")


def main() -> None:
    """Measure and print."""
    parser = build_parser("serving_speed", __doc__)
    parser.add_argument("--model", default=DEFAULT_CPU_MODEL)
    found = asyncio.run(_measure(parser.parse_args().model))
    print(json.dumps(found))


async def _measure(model: str) -> dict[str, dict[str, float]]:
    async with serve(model, extra_flags=("--enforce-eager",)) as served:
        client = AsyncOpenAI(base_url=served.base_url, api_key="none", timeout=600)

        async def write(prompt: str, tokens: int) -> int:
            reply = await client.completions.create(
                model=served.model,
                prompt=prompt,
                max_tokens=tokens,
                temperature=0,
                extra_body={"ignore_eos": True},
            )
            assert reply.usage is not None
            return reply.usage.prompt_tokens

        async def seconds(requests: int, tokens: int) -> float:
            started = time.perf_counter()
            await asyncio.gather(*(write(f"{number}, then", tokens) for number in range(requests)))
            return time.perf_counter() - started

        await write("warm up", STEPS)
        reads: dict[str, float] = {}
        for count in PROMPT_WORDS:
            words = random.Random(count).choices(WORDS, k=count)
            started = time.perf_counter()
            read = await write(" ".join(words), 1)
            reads[str(read)] = round(read / (time.perf_counter() - started), 1)
        print(f"{'tokens read':14}{'a second':>10}")
        for name, rate in reads.items():
            print(f"{name:14}{rate:10.1f}")
        steps = {
            str(requests): round((await seconds(requests, 1 + STEPS) - await seconds(requests, 1)) / STEPS, 3)
            for requests in REQUESTS
        }
        print(f"{'requests':14}{'s a step':>10}")
        for name, step in steps.items():
            print(f"{name:14}{step:10.3f}")
        return {"tokens_per_second": reads, "seconds_a_step": steps}


if __name__ == "__main__":
    main()
