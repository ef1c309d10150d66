"""The rules of well-known OpenAI-compatible endpoints: what each lists, refuses, ignores and answers.

`ProviderModel` answers a script's texts by such rules. docs/endpoints.md has a row for each, and a test
holds the row to what hallulab finds out there. Sources: the providers' documentation, and reports of users.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from hallulab.testing.scripted import Script, ScriptedModel, completion

Body = dict[str, Any]
Refusal = tuple[int, Any]
"""A status and the body of an error."""
Rule = Callable[[Body], Refusal | None]
"""Returns why a request is refused; None: it is not."""
Change = Callable[[Body, Body], Body]
"""From a request and its usual answer to the answer in the provider's form."""


def refuse(name: str, status: int, message: str, unless: Callable[[Any], bool] = lambda value: False) -> Rule:
    """Make the rule that a field of the body is refused, as OpenAI words it.

    Args:
        name: the field.
        status: of the answer.
        message: of the error.
        unless: whether a value is taken.
    """

    def look(body: Body) -> Refusal | None:
        if name not in body or unless(body[name]):
            return None
        error = {"message": message, "type": "invalid_request_error", "param": name, "code": None}
        return status, {"error": error}

    return look


def refuse_open_schemas(body: Body) -> Refusal | None:
    """Refuse a strict schema with an object that is open or has properties that are not required."""
    described = body.get("response_format", {}).get("json_schema", {})
    for schema in _find_objects(described.get("schema")):
        required = set(schema.get("required", ()))
        if schema.get("additionalProperties") is not False or required != set(schema["properties"]):
            message = (
                f"Invalid schema for response_format '{described.get('name')}': 'additionalProperties' is "
                "required to be supplied and to be false, and all properties are to be required."
            )
            return 400, {"error": {"message": message, "param": "response_format"}}
    return None


def _find_objects(schema: Any) -> Iterator[Body]:
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        for part in schema.values():
            yield from _find_objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _find_objects(part)


def ignore(*names: str) -> Callable[[Body], Body]:
    """Make what leaves fields of the body unread."""
    return lambda body: {name: value for name, value in body.items() if name not in names}


def change_tokens(spell: Callable[[str], Body]) -> Change:
    """Make the change of each token in the log-probabilities: `spell` gives its fields from its text."""

    def change(body: Body, answer: Body) -> Body:
        for token in _list_tokens(answer):
            text = token.pop("token")
            token.pop("bytes", None)
            token |= spell(text)
        return answer

    return change


def _list_tokens(answer: Body) -> Iterator[Body]:
    for place in (answer["choices"][0].get("logprobs") or {}).get("content") or ():
        yield from place["top_logprobs"]
        yield place


def drop_sampled(body: Body, answer: Body) -> Body:
    """Leave the sampled token out of the likeliest ones, as LMDeploy does."""
    for place in (answer["choices"][0].get("logprobs") or {}).get("content") or ():
        place["top_logprobs"] = [one for one in place["top_logprobs"] if one["token"] != place["token"]]
    return answer


def split_forms(body: Body, answer: Body) -> Body:
    """Give each likely word twice, with and without the `▁` of SentencePiece, the first more probable."""
    for place in (answer["choices"][0].get("logprobs") or {}).get("content") or ():
        place["top_logprobs"] = [
            {"token": f"{mark}{one['token']}", "logprob": one["logprob"] + math.log(share)}
            for one in place["top_logprobs"]
            for mark, share in (("▁", 0.7), ("", 0.3))
        ]
        place["token"], place["logprob"] = f"▁{place['token']}", place["logprob"] + math.log(0.7)
        del place["bytes"]
    return answer


def think_in_channels(body: Body, answer: Body) -> Body:
    """Give the thoughts of a harmony model before its answer, with the marks that a server leaves in."""
    message = answer["choices"][0]["message"]
    message["content"] = (
        "<|channel|>analysis<|message|>The user asks something. I must not make up 500 euros.<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{message['content']}"
    )
    answer["choices"][0].pop("logprobs", None)
    return answer


@dataclass(frozen=True)
class Provider:
    """The documented behaviour of a kind of endpoint."""

    name: str
    base_url: str
    """Where it is, as users give it."""
    model: str
    """A model, as users name it."""
    listed: tuple[str, ...] | None = ()
    """The models that it lists, the one of `model` if empty; None: it has no list."""
    rules: tuple[Rule, ...] = ()
    """Its refusals, in this order."""
    read: Callable[[Body], Body] = dict
    """The request as far as it is read."""
    change: Change = lambda _, answer: answer
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    """Values of the address that it needs."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its users' settings under `models`, besides `model` and `base_url`."""


_NO_LIMIT = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
    "instead."
)
_NO_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is "
    "supported."
)


def _refuse_more_than(most: int) -> Rule:
    def look(body: Body) -> Refusal | None:
        if (body.get("top_logprobs") or 0) <= most:
            return None
        told = f"Input validation error: `top_n_tokens` must be >= 0 and <= {most}."
        return 422, {"error": told, "error_type": "validation"}

    return look


def _refuse_cold(body: Body) -> Refusal | None:
    if body.get("temperature") != 0:
        return None
    told = "Input validation error: `temperature` must be strictly positive"
    return 422, {"error": told, "error_type": "validation"}


def _refuse_unknown(*names: str) -> Rule:
    """Make the rule of Gemini, which wraps its errors into a list."""

    def look(body: Body) -> Refusal | None:
        for name in names:
            if name in body:
                told = f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
                return 400, [{"error": {"code": 400, "message": told, "status": "INVALID_ARGUMENT"}}]
        return None

    return look


PROVIDERS: tuple[Provider, ...] = (
    Provider("OpenAI", "https://api.openai.com/v1", "gpt-4.1", rules=(refuse_open_schemas,)),
    Provider(
        "OpenAI, reasoning models",
        "https://api.openai.com/v1",
        "o4-mini",
        rules=(
            refuse("max_tokens", 400, _NO_LIMIT),
            refuse("temperature", 400, _NO_TEMPERATURE, lambda value: value == 1),
            refuse("logprobs", 403, "You are not allowed to request logprobs from this model."),
            refuse("stop", 400, "Unsupported parameter: 'stop' is not supported with this model."),
            refuse_open_schemas,
        ),
        options={"thoughts": 2000},
    ),
    Provider(
        "Azure OpenAI",
        "https://NAME.openai.azure.com/openai/deployments/gpt-4-1",
        "gpt-4-1",
        listed=None,
        rules=(refuse_open_schemas,),
        headers={"api-key": "key"},
        query={"api-version": "2024-10-21"},
        options={"headers": {"api-key": "${AZURE_OPENAI_API_KEY}"}, "query": {"api-version": "2024-10-21"}},
    ),
    Provider(
        "Anthropic",
        "https://api.anthropic.com/v1",
        "claude-sonnet-4-5",
        read=ignore("logprobs", "top_logprobs", "seed", "response_format"),
    ),
    Provider(
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "gemini-2.5-flash",
        listed=("models/gemini-2.5-flash", "models/gemini-2.5-pro"),
        rules=(_refuse_unknown("seed", "logprobs"),),
    ),
    Provider(
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "meta-llama/llama-3.1-70b-instruct",
        listed=("meta-llama/llama-3.1-70b-instruct", "meta-llama/llama-3.1-70b-instruct:free"),
        read=ignore("logprobs", "top_logprobs", "seed"),
    ),
    Provider("Ollama", "http://localhost:11434/v1", "llama3.2", listed=("llama3.2:latest", "qwen3:8b")),
    Provider("llama.cpp", "http://localhost:8080/v1", "qwen2.5-7b-instruct"),
    Provider(
        "LM Studio",
        "http://localhost:1234/v1",
        "qwen2.5-7b-instruct",
        read=ignore("logprobs", "top_logprobs"),
    ),
    Provider("SGLang", "http://localhost:30000/v1", "Qwen/Qwen2.5-7B-Instruct", read=ignore("seed")),
    Provider("LMDeploy", "http://localhost:23333/v1", "internlm2_5-7b-chat", change=drop_sampled),
    Provider(
        "TGI", "http://localhost:8080/v1", "tgi", rules=(_refuse_cold, _refuse_more_than(5)), listed=("tgi",)
    ),
    Provider("vLLM", "http://localhost:8000/v1", "Qwen/Qwen2.5-7B-Instruct"),
)
"""The rows of docs/endpoints.md."""

FORMS: tuple[Provider, ...] = (
    Provider("SentencePiece", "http://localhost:8000/v1", "forms", change=split_forms),
    Provider("harmony", "http://localhost:8000/v1", "gpt-oss", change=think_in_channels),
)
"""Forms of answers that several servers have."""


class ProviderModel(ScriptedModel):
    """A model that answers from a script by the rules of a provider, in this process.

    Args:
        provider: the rules.
        script: makes an answer from the body of a request, as far as the provider reads it. Probabilities of
            first tokens are given where log-probabilities are asked for, else the likeliest is printed.
    """

    def __init__(self, provider: Provider, script: Script) -> None:
        super().__init__(self._answer_by_rules, "-".join(re.findall(r"[a-z]+", provider.name.lower())))
        self._provider = provider
        self._tell = script
        self.refused: list[Body] = []
        """Requests that were refused."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer by the rules."""
        provider = self._provider
        lacking = [name for name, value in provider.headers.items() if request.headers.get(name) != value]
        if lacking:
            told = {"error": {"code": "401", "message": "Access denied due to invalid subscription key."}}
            return httpx2.Response(401, json=told)
        if dict(request.url.params) != dict(provider.query):
            return httpx2.Response(404, json={"error": {"code": "404", "message": "Resource not found"}})
        if request.method == "GET":
            if provider.listed is None:
                return httpx2.Response(404, json={"error": {"code": "404", "message": "Resource not found"}})
            ids = provider.listed or (provider.model,)
            return httpx2.Response(200, json={"data": [{"id": name, "object": "model"} for name in ids]})
        return await super().handle_async_request(request)

    def _answer_by_rules(self, body: Body) -> httpx2.Response:
        for rule in self._provider.rules:
            refusal = rule(body)
            if refusal is not None:
                self.refused.append(self.requests.pop())
                return httpx2.Response(refusal[0], json=refusal[1])
        read = self._provider.read(body)
        answer = self._tell(read)
        if isinstance(answer, httpx2.Response):
            return answer
        if isinstance(answer, Mapping) and not read.get("logprobs"):
            answer = max(answer, key=answer.__getitem__)
        return httpx2.Response(200, json=self._provider.change(read, completion(answer, body["model"])))
