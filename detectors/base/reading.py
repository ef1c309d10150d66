"""Texts of a turn as a detector reads them: without what claims nothing, in one form and a known language.

Every detector, also of others, gets replies and passages through here (`run_detector`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.framing import find_unclaimed
from hallulab.scenarios.text.languages import identify_language, list_likely_languages, name_language
from hallulab.scenarios.text.one_form import (
    OneForm,
    collect_spellings,
    is_in_one_form,
    leave_out,
    unify_form,
    unify_text,
)
from hallulab.scenarios.transcript import Judgement
from hallulab.scenarios.turn_views import TurnView

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class TurnAsRead:
    """A turn as a detector reads it."""

    view: TurnView
    """The turn in one form, its reply without what claims nothing."""
    reply: OneForm
    """The reply as it is read, which knows the places in the reply as it was said."""
    unread: str | None
    """Why the detector cannot read the turn; None: it can."""

    def restore(self, judgement: Judgement, reply: str) -> Judgement:
        """Return a judgement of `view.reply` with its places in the reply as it was said."""
        if self.reply.places is None:
            return judgement
        changed: dict[str, Any] = {"units": self._restore_places(judgement.units, reply)}
        if judgement.spans is not None:
            changed["spans"] = self._restore_places(judgement.spans, reply)
        if judgement.word_scores is not None:
            changed["word_scores"] = self._restore_word_scores(judgement.word_scores, reply)
        return judgement.model_copy(update=changed)

    def _restore_places(self, pieces: Sequence[Any], reply: str) -> tuple[Any, ...]:
        restored = []
        for piece in pieces:
            if piece.start is not None:
                start, end = self.reply.find_origin(piece.start, piece.end)
                piece = piece.model_copy(update={"start": start, "end": end, "text": reply[start:end]})
            restored.append(piece)
        return tuple(restored)

    def _restore_word_scores(self, scores: Sequence[float], reply: str) -> tuple[float, ...]:
        """Return a score for each word of the reply: that of the worst word it has a part in, or else 0."""
        read = [self.reply.find_origin(*word.span()) for word in _WORD.finditer(self.reply.text)]
        found = []
        first = 0
        for word in _WORD.finditer(reply):
            while first < len(read) and read[first][1] <= word.start():
                first += 1
            last = first
            while last < len(read) and read[last][0] < word.end():
                last += 1
            found.append(max(scores[first:last], default=0.0))
        return tuple(found)


def read_turn(name: str, languages: Sequence[str] | None, view: TurnView) -> TurnAsRead:
    """Return a turn as the detector of that name, which a reason mentions, reads it."""
    reply = leave_out(view.reply, find_unclaimed(view.reply))
    view, reply = _unify_view(view.model_copy(update={"reply": reply.text}), reply)
    return TurnAsRead(view, reply, None if languages is None else _explain_unread(name, languages, view))


def _unify_view(view: TurnView, reply: OneForm) -> tuple[TurnView, OneForm]:
    """Return the turn with reply and passages in one form, and the reply's form."""
    texts = [view.reply, *(passage.text for passage in view.passages)]
    if all(map(is_in_one_form, texts)):
        return view, reply
    spellings = collect_spellings(texts)
    reply = unify_form(reply, spellings)
    passages = (unify_text(passage.text, spellings) for passage in view.passages)
    changed = tuple(
        passage if form.places is None else passage.model_copy(update={"text": form.text})
        for passage, form in zip(view.passages, passages, strict=True)
    )
    return view.model_copy(update={"reply": reply.text, "passages": changed}), reply


def _explain_unread(name: str, languages: Sequence[str], view: TurnView) -> str | None:
    """Return in words which language of a turn is none of those that a detector reads; None: it reads it."""
    said = identify_reply_language(view)
    read = " and ".join(map(name_language, languages))
    if said not in languages:
        return f"the reply is in {name_language(said)}, and {name} reads {read} only"
    others = list_other_languages(view, lambda written: written in languages)
    return f"the evidence is in {others}, and {name} reads {read} only" if others else None


def identify_reply_language(view: TurnView | LabelledReply) -> str:
    """Return the code of the reply's language.

    A reply whose few words do not tell, or speak for several, is in that of the evidence, or else of the
    question, or else English.
    """
    said = list_likely_languages(view.reply)
    if len(said) == 1:
        return said[0]
    written = [identify_language(passage.text) for passage in view.passages]
    known = [
        code
        for code in (*written, identify_language(view.question))
        if code is not None and (not said or code in said)
    ]
    return max(known, key=known.count) if known else next(iter(said), "en")


def list_other_languages(view: TurnView, is_read: Callable[[str], bool]) -> str:
    """Return in words the languages of the evidence; empty where one of them is read, or none is known."""
    found = set()
    for passage in view.passages:
        code = identify_language(passage.text)
        if code is not None:
            if is_read(code):
                return ""
            found.add(name_language(code))
    return " and ".join(sorted(found))
