"""A scripted endpoint that says which models it serves."""

from __future__ import annotations

import httpx2

from hallulab.testing.scripted import Script, ScriptedTransport


class ServingModels(ScriptedTransport):
    """Lists these models; the script tells them apart by the request's `model`."""

    def __init__(self, script: Script, *models: str) -> None:
        super().__init__(script)
        self._listed = {"data": [{"id": model} for model in models]}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json=self._listed, request=request)
        return await super().handle_async_request(request)
