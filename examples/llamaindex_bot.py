"""A LlamaIndex bot on a folder of documents, to copy: an index and a chat engine that remembers.

It has an environment of its own, in which hallulab need not be installed. With uv in place
of pip, add `--link-mode copy`, because nltk reads no linked files:

    python -m venv bot-env
    bot-env/bin/pip install -r examples/llamaindex_bot.requirements.txt
    export BOT_DOCUMENTS=my-pack/documents BOT_BASE_URL=http://127.0.0.1:8000/v1 BOT_MODEL=my-model

    chatbots:
      - name: index
        kind: callable
        options: {target: "examples.llamaindex_bot:reply", python: bot-env/bin/python}

The model's key, if it needs one, is in OPENAI_API_KEY. Without BOT_BASE_URL no model is asked: LlamaIndex's
mock repeats what a model would be sent.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from llama_index.core import Document, SimpleKeywordTableIndex
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode
from llama_index.llms.openai_like import OpenAILike

TOP_K = 3


def _read_documents(folder: Path) -> list[Document]:
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".md", ".txt"})
    return [Document(text=path.read_text(encoding="utf-8"), metadata={"source": path.stem}) for path in files]


def _name_passage(number: int, document: BaseNode) -> str:
    # Otherwise each process draws other names, and two conversations never read the same passage.
    return f"{document.metadata['source']}#{number}"


def _connect_model() -> LLM:
    if "BOT_BASE_URL" not in os.environ:
        return MockLLM()
    return OpenAILike(
        api_base=os.environ["BOT_BASE_URL"],
        model=os.environ["BOT_MODEL"],
        api_key=os.environ.get("OPENAI_API_KEY", "none"),
        is_chat_model=True,
        context_window=8192,
        temperature=0,
    )


@cache
def _make_engine() -> ContextChatEngine:
    """Make the bot at the first message. Each conversation has its own process, and so its own memory."""
    model = _connect_model()
    # An index of keywords asks no model and needs no embeddings. Put yours here.
    index = SimpleKeywordTableIndex.from_documents(
        _read_documents(Path(os.environ["BOT_DOCUMENTS"])),
        transformations=[SentenceSplitter(chunk_size=256, chunk_overlap=0, id_func=_name_passage)],
        llm=model,
    )
    return ContextChatEngine.from_defaults(
        retriever=index.as_retriever(retriever_mode="simple", num_chunks_per_query=TOP_K),
        llm=model,
        memory=ChatMemoryBuffer.from_defaults(token_limit=6000),
        system_prompt="Answer from the documents alone. If they do not tell, say so.",
    )


def reply(messages: list[dict[str, str]]) -> dict[str, Any]:
    """Answer the last message; the engine remembers the others."""
    answer = _make_engine().chat(messages[-1]["content"])
    # `passages` are the library's nodes as they are; hallulab reads their texts, names and sources.
    return {"reply": answer.response, "passages": answer.source_nodes}
