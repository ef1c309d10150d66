"""Stands in for vLLM: its server and its `run-batch` give the answers of `hallulab.testing.endpoint`."""

from __future__ import annotations

from pathlib import Path

from hallulab.agents.serving.prepare import PreparedModel
from hallulab.testing.endpoint import MODEL
from tests.agents.serving.fake_server import fake_prepared
from tests.places import ROOT

_SCRIPT = """
import asyncio, json, pathlib, sys
sys.path.insert(0, {root!r})
from hallulab.testing.endpoint import StubProtocol, completion, http_response

def value(flag):
    return sys.argv[sys.argv.index(flag) + 1]

def note(what):
    with open({log!r}, "a") as log:
        log.write(what + "\\n")

def answer(asked):
    response = {{"status_code": 200, "request_id": "r", "body": completion(asked["body"])}}
    return {{"id": "l", "custom_id": asked["custom_id"], "response": response, "error": None}}

async def serve():
    class Protocol(StubProtocol):
        def respond(self, head, body):
            if body:
                note("question")
                super().respond(head, body)
            else:
                models = {{"data": [{{"id": value("--served-model-name"), "root": value("--model")}}]}}
                self._transport.write(http_response(json.dumps(models).encode()))
    server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", int(value("--port")))
    await server.serve_forever()

if value("-m").endswith("api_server"):
    note("server")
    asyncio.run(serve())
else:
    asked = [json.loads(line) for line in pathlib.Path(value("-i")).read_text().splitlines()]
    note("batch " + " ".join(one["custom_id"] for one in asked))
    {before}
    pathlib.Path(value("-o")).write_text("".join(json.dumps(answer(one)) + "\\n" for one in asked))
"""


class FakeVllm:
    """A prepared model that vLLM would serve, and what was asked of it.

    Args:
        folder: keeps its files.
        before: code that runs before a batch is answered.
    """

    def __init__(self, folder: Path, before: str = "") -> None:
        folder.mkdir(exist_ok=True)
        self._log = folder / "asked.log"
        self._log.touch()
        self.script = _SCRIPT.format(root=str(ROOT), log=str(self._log), before=before)
        """What its Python does."""
        self.prepared: PreparedModel = fake_prepared(folder, self.script).model_copy(
            update={"name": MODEL, "names": (MODEL,)}
        )

    @property
    def notes(self) -> list[list[str]]:
        """What happened: `server`, `question`, `batch` with its requests; in words."""
        return [line.split(" ") for line in self._log.read_text().splitlines()]

    @property
    def batches(self) -> list[list[str]]:
        """Requests of each batch that was begun."""
        return [note[1:] for note in self.notes if note[0] == "batch"]
