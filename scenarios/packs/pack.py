"""The content of a scenario pack: a folder with a `scenario.yaml`, documents and personas.

docs/scenario-packs.md describes the files. A pack is only data; nothing in it is executed.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scenarios.transcript import Frozen

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
"""Small letters, digits and hyphens; safe in file names and keys."""


class Specialist(Frozen):
    """One of the role agents that AgentBot's receptionist can route to."""

    name: str = Field(min_length=1)
    """`paralegal`, `lawyer`, `drafter` …; lower case, one word."""
    title: str
    """The role's name in prompts."""
    duty: str
    """Its duty: the receptionist chooses by it, and it is part of the specialist's instructions."""


class Document(Frozen):
    """A knowledge document before it is cut into passages."""

    name: str
    """File name without suffix; the `document` of its passages."""
    title: str
    """Shown to people and put before each passage."""
    source: str
    """Where the facts come from: an Act and section, a regulation, a portal."""
    topic: str | None = None
    """Topic label, which identity-aware thresholds use (MetaRAG section 3.6)."""
    sector: str | None = None
    """Consumer sector or similar grouping."""
    text: str
    """The body, without front matter."""


class Persona(Frozen):
    """A simulated user: who they are and what they want."""

    id: Identifier
    """Identifier, unique in the pack."""
    name: str
    """The person's name."""
    sector: str | None = None
    """Sector of the grievance."""
    grievance: str
    """What happened, in the third person."""
    goals: tuple[str, ...] = Field(min_length=1)
    """What the person wants to know or get from this conversation."""
    facts: tuple[str, ...] = ()
    """What the person knows and tells if asked: names, dates, amounts."""
    manner: str
    """How the person speaks."""
    summary: str
    """Summary of a reference chat: the simulated user's situation (HalluDetect B.9)."""


class Scenario(Frozen):
    """A loaded scenario pack."""

    name: Identifier
    """Identifier of the pack."""
    title: str
    """Shown to people."""
    description: str
    """One or two sentences for `hallulab list scenarios`."""
    domain: str
    """The chatbots' subject, in the words of a prompt: `consumer law in India`."""
    assistant: str
    """The assistant's task, in the words of a prompt: `help consumers with grievances`."""
    licence: str | None = None
    """Licence of documents and personas; None: it does not say."""
    functions: tuple[str, ...] = ()
    """The assistant's core functions, one line each."""
    specialists: tuple[Specialist, ...] = Field(min_length=1)
    """AgentBot's role agents."""
    identity_thresholds: dict[str, float] = Field(default_factory=dict)
    """Topic label → MetaRAG threshold, for topics that need a stricter one (τ_identity = 0.3)."""
    documents: tuple[Document, ...]
    """The knowledge documents; imported chats may have none."""
    personas: tuple[Persona, ...]
    """The simulated users; imported chats have none."""
