"""A LangGraph bot on a folder of documents, to copy: it retrieves, asks a model, and remembers.

It has an environment of its own, in which hallulab need not be installed:

    python -m venv bot-env
    bot-env/bin/pip install -r examples/langgraph_bot.requirements.txt
    export BOT_DOCUMENTS=my-pack/documents BOT_BASE_URL=http://127.0.0.1:8000/v1 BOT_MODEL=my-model

    chatbots:
      - name: graph
        kind: callable
        options: {target: "examples.langgraph_bot:reply", python: bot-env/bin/python}

The model's key, if it needs one, is in OPENAI_API_KEY. Without BOT_BASE_URL no model is asked: then the bot
quotes the nearest passage.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.retrievers import BaseRetriever
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

TOP_K = 3


class BM25(BaseRetriever):
    """Finds the paragraphs of Markdown and text files by their words. It needs no model and no network."""

    passages: list[Document]
    words: list[Counter[str]]

    @classmethod
    def read(cls, folder: Path) -> BM25:
        """Read a folder's files, each in paragraphs."""
        passages = []
        for path in sorted(path for path in folder.rglob("*") if path.suffix in {".md", ".txt"}):
            paragraphs = re.split(r"\n\s*\n", path.read_text(encoding="utf-8"))
            told = [one.strip() for one in paragraphs if one.strip() and not one.startswith("#")]
            passages += [
                Document(id=f"{path.stem}#{number}", page_content=text, metadata={"source": path.stem})
                for number, text in enumerate(told)
            ]
        return cls(passages=passages, words=[Counter(_split(one.page_content)) for one in passages])

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        average = sum(words.total() for words in self.words) / max(1, len(self.words))
        scores = [0.0] * len(self.words)
        for word in set(_split(query)):
            holders = sum(word in words for words in self.words)
            rarity = math.log(1 + (len(self.words) - holders + 0.5) / (holders + 0.5))
            for place, words in enumerate(self.words):
                length = 0.25 + 0.75 * words.total() / average
                scores[place] += rarity * words[word] * 2.2 / (words[word] + 1.2 * length)
        best = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:TOP_K]
        return [self.passages[place] for place in best if scores[place] > 0]


def _split(text: str) -> list[str]:
    return re.findall(r"\w{3,}", text.lower())


class State(MessagesState):
    """State of the graph: all messages, and the passages of the last reply."""

    documents: list[Document]


@cache
def _load_retriever() -> BM25:
    return BM25.read(Path(os.environ["BOT_DOCUMENTS"]))


@cache
def _connect_model() -> ChatOpenAI:
    # Made at the first call, not at the import: a connection must not be shared by conversations.
    return ChatOpenAI(
        base_url=os.environ["BOT_BASE_URL"],
        model=os.environ["BOT_MODEL"],
        api_key=lambda: os.environ.get("OPENAI_API_KEY", "none"),
        temperature=0,
    )


def retrieve(state: State) -> dict[str, Any]:
    """Search for what the user has just said."""
    return {"documents": _load_retriever().invoke(str(state["messages"][-1].content))}


def answer(state: State) -> dict[str, Any]:
    """Answer from the documents."""
    texts = [one.page_content for one in state["documents"]]
    if "BOT_BASE_URL" not in os.environ:
        return {"messages": [AIMessage(texts[0] if texts else "I found nothing about that.")]}
    instructions = "Answer from these documents alone. If they do not tell, say so.\n\n" + "\n\n".join(texts)
    return {"messages": [_connect_model().invoke([SystemMessage(instructions), *state["messages"]])]}


def _build_graph() -> Any:
    graph = StateGraph(State)
    graph.add_node("retrieve", retrieve)
    graph.add_node("answer", answer)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=InMemorySaver())


GRAPH = _build_graph()


def reply(messages: list[dict[str, str]]) -> dict[str, Any]:
    """Answer the last message. The graph remembers the others: each conversation has its own process."""
    state = GRAPH.invoke(
        {"messages": [HumanMessage(messages[-1]["content"])]}, {"configurable": {"thread_id": "conversation"}}
    )
    # `passages` are the library's documents as they are; hallulab reads their texts, names and sources.
    return {"reply": state["messages"][-1].content, "passages": state["documents"]}
