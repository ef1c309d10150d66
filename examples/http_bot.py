"""A bot behind an OpenAI-compatible endpoint, to stand where yours is. It has no model.

It answers with the paragraph of the documents that shares the rarest words with the question, sentences as
they stand. So it never invents anything, and often misses the point.

    python examples/http_bot.py DIR --port 9000
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAME = "http-bot"
_SENTENCES = 3


class Paragraphs:
    """The paragraphs of Markdown and text files."""

    def __init__(self, folder: Path) -> None:
        files = sorted(path for path in folder.rglob("*") if path.suffix in {".md", ".txt"})
        texts = [path.read_text(encoding="utf-8") for path in files]
        found = [piece.strip() for text in texts for piece in re.split(r"\n\s*\n", _without_labels(text))]
        self._texts = [piece for piece in found if piece and not piece.startswith("#")]
        self._words = [_words(text) for text in self._texts]
        seen = Counter(word for words in self._words for word in words)
        self._rarity = {word: math.log(1 + len(self._texts) / count) for word, count in seen.items()}

    def nearest(self, question: str) -> str:
        """Return the first sentences of the nearest paragraph; nothing fits: an apology."""
        asked = _words(question)
        shared = [sum(self._rarity[word] for word in asked & words) for words in self._words]
        best = max(range(len(shared)), key=shared.__getitem__, default=None)
        if best is None or not shared[best]:
            return "I am sorry, I know nothing about that."
        return " ".join(re.split(r"(?<=[.!?])\s+", self._texts[best])[:_SENTENCES])


def _without_labels(text: str) -> str:
    return text.split("\n---\n", 1)[1] if text.startswith("---\n") else text


def _words(text: str) -> set[str]:
    return {word[:6] for word in re.findall(r"[a-z]{4,}|\d+", text.lower())}


def handler(paragraphs: Paragraphs) -> type[BaseHTTPRequestHandler]:
    """Return what answers `POST /v1/chat/completions`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            questions = [message["content"] for message in body["messages"] if message["role"] == "user"]
            message = {"role": "assistant", "content": paragraphs.nearest(questions[-1])}
            self._say({"model": NAME, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

        def _say(self, answer: dict[str, Any]) -> None:
            payload = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def main() -> None:
    """Serve on loopback until stopped."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", type=Path)
    parser.add_argument("--port", type=int, default=9000)
    arguments = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), handler(Paragraphs(arguments.documents)))
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
