"""Leave out what a model thought before or amid its answer, in all forms in which servers leave it there.

Forms: tags (`<think>`, `[THINK]`, `<|begin_of_thought|>`, …), the channels of gpt-oss (harmony), also without
their markers, and Granite's two sentences. Sources: the reasoning parsers of vLLM and SGLang, the templates
of the models. A text that only quotes such a tag, in a sentence or in code, is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_NAMES = (
    r"(?:\w{1,20}_)?think(?:ing)?(?:_\w{1,20})?|thoughts?(?:_process)?|reasoning(?:_content|_process|_scratchpad)?|reason"
    r"|reflection|scratchpad|analysis|plan|planning|deliberat(?:e|ion)|cot(?:_\w{1,20})?"
    r"|chain_of_thought|(?:inner|internal)_\w{1,20}|ant_?thinking"
    r"|思[考维維](?:过程|過程|プロセス|链)?|推[理論](?:过程|過程)?|反思|사고|생각|추론|विचार|تفكير"
    r"|gedanken(?:gang)?|überlegung(?:en)?|denk(?:en|prozess)"
    r"|pensées?|réflexion|raisonnement|pensamientos?|razonamiento|pensamentos?|raciocínio|ragionamento|pensiero"
    r"|мысл[иь]|размышлени[ея]|рассуждени[ея]|думк[аи]|міркування|düşünce|考え|思索|सोच|चिंतन"
    r"|التفكير|تفکر|חשיבה|ความคิด|চিন্তা|suy[_ ]nghĩ|pemikiran|pensieri|reflexi[óo]n|reflexão|denkproces"
    r"|gedachten(?:gang)?|myśl(?:i|enie)|myšlenky|přemýšlení|gondolatmenet|gândire|tankegang|σκέψ(?:η|εις)"
)
_KINDS = r"(?:think(?:ing)?|thoughts?|reasoning|inner_prefix)"
_OPEN, _SHUT = r"(?:<|＜|&lt;|\\u003c)", r"(?:>|＞|&gt;|\\u003e)"
_SUMMARY = (
    r"[^\w<>\n]{0,20}(?:(?:show|hide|view|see|click|to|expand|model|internal|chain|of|its|the|my|ai|'?s)\W{1,3}){0,5}"
    r"(?:think(?:ing)?|thoughts?|reason(?:ing|ed)|思考)(?!\w)"
)
_TAG = re.compile(
    rf"(?P<fence>^[ \t]*(?:```+|~~~+))"
    rf"|(?P<ticks>`+)"
    rf"|{_OPEN}\s?(?P<close>\\?/\s?)?(?:\w{{1,20}}:)?(?P<xml>{_NAMES})(?:\s[^<>\n]{{0,200}}?)?(?P<empty>/)?{_SHUT}"
    rf"|[\[【](?P<shut>/)?(?P<bracket>think|thinking|thoughts?|reasoning|思考)[\]】]"
    rf"|(?P<details><details(?:\s[^<>\n]{{0,200}}type=[\"']reasoning[\"'][^<>\n]{{0,200}}>"
    rf"|[^<>\n]{{0,200}}>\s{{0,9}}<summary>{_SUMMARY}[^<>\n]{{0,80}}</summary>))"
    rf"|(?P<undetails></details>)"
    rf"|(?P<begin><[|｜](?:(?:begin|start)[_▁]?(?:of[_▁]?)?)?{_KINDS}(?:[_▁](?:start|begin))?[|｜]>|◁think▷"
    rf"|<start_of_thought>|<\|channel>(?:thought|thinking|analysis)\b|<unused94>(?:thought)?|<\|im_start\|>think\b)"
    rf"|(?P<end><[|｜](?:end[_▁]?(?:of[_▁]?)?|/){_KINDS}[|｜]>|<[|｜]{_KINDS}[_▁]end[|｜]>|<\|inner_suffix\|>"
    rf"|◁/think▷|<end_of_thought>|<channel\|>|<unused95>|<\|im_start\|>answer\b"
    rf"|(?:<\|end\|>\s?)?<\|begin\|>assistant<\|content\|>"
    rf"|\[BEGIN FINAL RESPONSE\])",
    re.IGNORECASE | re.MULTILINE,
)
_WRAPPERS = re.compile(
    r"<\|(?:begin_of_solution|end_of_solution|start_response|end_response|start_text|end_text|begin_of_box"
    r"|end_of_box)\|>|\[END FINAL RESPONSE\]|\A<\|content\|>",
    re.IGNORECASE,
)
_RULE = re.compile(r"\A\s*+(?:-{3,}|\*{3,}|_{3,})[ \t]*+\n")
"""A line between a thought and the reply."""
_ANSWER = re.compile(
    r"<(?:answer|response|output|final(?:_answer|_response|_output)?|solution)>", re.IGNORECASE
)
_WRAPPED = re.compile(
    r"\s*<(answer|response|output|final(?:_answer|_response|_output)?|solution)>(.*?)(?:</\1>\s*)?\Z",
    re.I | re.DOTALL,
)

_QUOTES = frozenset(
    "\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}"
    "\N{RIGHT SINGLE QUOTATION MARK}«»„"
)
_SENTENCE_ENDS = frozenset(".!?…)]}>*_。！？")
_TALKED_ABOUT = re.compile(
    r"[ \t]*(?:(?:and|or|to|is|are|was|tags?|tokens?|markers?|marks?|begins?|starts?|opens?|ends?|closes?"
    r"|blocks?)\b"
    r"|[.,;:?!)/&|…\"'`*])",
    re.IGNORECASE,
)
"""How a sentence about a tag goes on."""
_ORDINARY = re.compile(r"reason>|plan>|analysis|planning|reflection|deliberation", re.IGNORECASE)
"""Names of thoughts that are fields of forms, too."""
_ELEMENT = re.compile(r"<([A-Za-z][\w-]{0,40})>")
_NO_DATA = frozenset(
    {"answer", "response", "output", "final", "solution", "message", "div", "p", "span", "body"}
)
"""Elements around a whole answer."""
_FEW_WORDS = 4
_HEAD = 400
"""Characters of a thought that are looked at."""

_CHANNEL = re.compile(r"<\|channel\|>\s*(analysis|commentary|final|thought)\b([^<\n]{0,200})", re.IGNORECASE)
_CODE = re.compile(r"^[ \t]*```.*?^[ \t]*```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<\|(?:start|end|return|call|channel|message|constrain)\|>", re.IGNORECASE)
_UNMARKED = re.compile(r"\s*(?:assistant)?(?:analysis|commentary)(?=[A-Z\"'*(<]|\s*to=|[a-z]{0,20} )")
_UNMARKED_FINAL = re.compile(r"assistantfinal")
_UNMARKED_CALL = re.compile(r"assistantcommentary\s+to=\w|\A\s*commentary\s+to=\w")
_GRANITE = re.compile(r"\s*here(?:'s| is) my thought process:", re.IGNORECASE)
_GRANITE_ANSWER = re.compile(r"here(?:'s| is) my response:", re.IGNORECASE)

_REACT = re.compile(r"\s*[*#]{0,3}\s?(?:Thought|思考)[*]{0,2}\s?[:：]")
_REACT_FINAL = re.compile(
    r"^[*#]{0,3}[ \t]?(?:Final Answer|最终答案|最终回答)[*]{0,2}[ \t]?[:：][*]{0,2}", re.MULTILINE
)
_HEADING = re.compile(
    r"^[ \t]*(?=[#*_])#{0,6}[ \t]*[*_]{0,3}(?P<name>[^*_#\s:：][^*_#\n:：]{1,40})"
    r"(?:[:：][*_]{0,3}|[*_]{0,3}[ \t]*(?:[:：]|$))",
    re.MULTILINE,
)
_THOUGHT_HEADING = re.compile(
    r"(?:my )?(?:thinking|thought)(?: process)?|thoughts|chain of thought|scratchpad"
    r"|(?:internal|inner) (?:monologue|thoughts|reasoning)|思考(?:过程|過程)?|gedankengang|denkprozess"
    r"|réflexion|pensamiento|raciocínio"
)
_ANSWER_HEADING = re.compile(
    r"(?:(?:my|final) )?(?:answer|response|reply|output)(?: to (?:the )?user)?"
    r"|(?:最终|最終)?(?:答案|回答|答复)|antwort|réponse(?: finale)?|respuesta(?: final)?|resposta(?: final)?"
)
"""A text with headings of only one of both is left as it is."""

_THOUGHT_FENCE = re.compile(
    r"\s*```(?:think(?:ing)?|thoughts?|reasoning)[ \t]*\n(?:(?!```).*\n)*?```[ \t]*(?:\n|\Z)", re.IGNORECASE
)
_THOUGHT_QUOTATION = re.compile(
    r"\s*[*_]{0,2}Thinking(?:\.{3}|…)[*_]{0,2}[ \t]*\n\s*(?:>[^\n]*(?:\n\s*|\Z))+"
)


class Spoken(NamedTuple):
    """An answer without what the model thought."""

    text: str
    """The rest; may be empty."""
    thought: bool
    """True if something was left out."""
    called: bool = False
    """True if the model called a tool in a channel of its own."""


def leave_out_thoughts(text: str) -> Spoken:
    """Return a model's text without its thoughts. It takes time in proportion to the text.

    An end of thoughts without a beginning counts where no sentence is about it: on a line of its own, or at
    once behind a sentence.
    """
    spoken = _read_channels(text)
    if spoken is None:
        spoken = _read_unmarked_channels(text) or _read_granite(text) or _read_sections(text)
    found = _leave_out_tagged(spoken.text)
    thought = spoken.thought or found.thought
    plain = found.text
    if thought or _WRAPPERS.search(plain):
        plain = _WRAPPERS.sub("", plain)
    if thought:
        plain = _RULE.sub("", plain)
        wrapped = _WRAPPED.match(plain)
        plain = (wrapped[2] if wrapped else plain).strip()
    return Spoken(plain, thought, spoken.called)


def _read_channels(text: str) -> Spoken | None:
    """Read the channels of gpt-oss: only the final one is said; None if there are none."""
    begun = re.match(r"\s*(?:analysis|commentary|final)[^<\n]{0,200}<\|message\|>", text, re.IGNORECASE)
    if begun is not None:
        text = f"<|channel|>{text.lstrip()}"
    channels = list(_CHANNEL.finditer(text))
    if not channels:
        return None
    place = channels[0].start()
    if place and text[place - 1] in _QUOTES:
        return None
    if any(code.start() < place < code.end() for code in _CODE.finditer(text)):
        return None
    said, final, called = [_without_start(text[: channels[0].start()])], [], False
    ends = [found.start() for found in channels[1:]] + [len(text)]
    for channel, end in zip(channels, ends, strict=True):
        body = text[channel.end() : end]
        called = called or re.match(r"\s*to=", channel[2]) is not None
        message = re.match(r"(?:\s*<\|constrain\|>\s*\w*)?\s*(?:<\|message\|>)?", body, re.IGNORECASE)
        body = body[message.end() :] if message else body
        if channel[1].lower() == "final" and channel[2].strip() and not channel[2].strip().startswith("to="):
            body = channel[2] + body  # no marker between the channel's name and its text
        own, *rest = re.split(r"<\|(?:end|return|call)\|>", body, maxsplit=1, flags=re.IGNORECASE)
        if channel[1].lower() == "final":
            final.append(_without_start(own))
        said += [_without_start(one) for one in rest]
    plain = "".join(final) if final else "".join(said)
    return Spoken(_MARK.sub("", plain).strip(), thought=True, called=called)


def _without_start(text: str) -> str:
    """Return a text without the head of the next message."""
    return re.sub(r"<\|start\|>\s*\w*[^<\n]{0,100}\Z", "", text, flags=re.IGNORECASE)


def _read_unmarked_channels(text: str) -> Spoken | None:
    """Read channels whose markers a server removed: `analysis…assistantfinal…`."""
    finals = list(_UNMARKED_FINAL.finditer(text))
    begins = _UNMARKED.match(text)
    if begins is None and not (finals and not text[: finals[0].start()].strip()):
        return None
    called = _UNMARKED_CALL.search(text) is not None
    if finals:
        return Spoken(text[finals[-1].end() :].strip(), thought=True, called=called)
    attached = re.match(r"\s*(?:assistant)?(?:analysis|commentary)(?=[A-Z])", text)
    return Spoken("", thought=True, called=called) if attached or called else None


def _read_granite(text: str) -> Spoken | None:
    """Read Granite's form: its thought process, and its response."""
    begins = _GRANITE.match(text)
    if begins is None:
        return None
    answer = _GRANITE_ANSWER.search(text, begins.end())
    return Spoken(text[answer.end() :].strip() if answer else "", thought=True)


def _read_sections(text: str) -> Spoken:
    """Read the forms of agents and services: ReAct's steps, headings, a block of code, Poe's quotation."""
    final = list(_REACT_FINAL.finditer(text)) if _REACT.match(text) else []
    if final:
        return Spoken(text[final[-1].end() :].strip(), thought=True)
    headings = list(_HEADING.finditer(text))
    names = [re.sub(r"\A\W+|\W+\Z", "", one["name"].lower().replace("-", " ")) for one in headings]
    if names and not text[: headings[0].start()].strip() and _THOUGHT_HEADING.fullmatch(names[0]):
        for heading, name in zip(headings, names, strict=True):
            if _ANSWER_HEADING.fullmatch(name):
                return Spoken(text[heading.end() :].strip(), thought=True)
    begun = _THOUGHT_FENCE.match(text) or _THOUGHT_QUOTATION.match(text)
    return Spoken(text[begun.end() :].strip(), thought=True) if begun else Spoken(text, thought=False)


@dataclass(frozen=True)
class _Tag:
    """A tag that may begin or end a thought."""

    start: int
    end: int
    family: str
    begins: bool


def _leave_out_tagged(text: str) -> Spoken:
    tags = list(_list_tags(text))
    if not tags:
        return Spoken(text, thought=False)
    ends = _match_ends(tags)
    kept: list[str] = []
    place, matched = 0, set[int]()
    for tag in tags:
        if tag.start < place or not tag.begins:
            continue
        end = ends.get(tag.start)
        if not _begins_thought(text, tag, end):
            if end is not None:
                matched.add(end.start)
            continue
        kept.append(_follow(kept, text[place : tag.start]))
        if end is None:  # the thought ends at a tag of the answer, or with the text
            answer = _ANSWER.search(text, tag.end)
            place = len(text) if answer is None else answer.start()
        else:
            place = end.end
            matched.add(end.start)
    kept.append(_follow(kept, text[place:]))
    alone = _find_last_end_alone(text, tags, matched)
    if alone is not None and alone >= place:
        return Spoken(text[alone:], thought=True)
    return Spoken("".join(kept), thought=len(kept) > 1)


def _follow(kept: Sequence[str], text: str) -> str:
    """Return a text as it follows others, with one space between."""
    return text.lstrip(" ") if kept and kept[-1][-1:].isspace() else text


def _list_tags(text: str) -> Iterator[_Tag]:
    """Yield the tags outside code and quotation marks, in order."""
    found = list(_TAG.finditer(text))
    after = _find_same_after(found)
    skip = 0
    for place, one in enumerate(found):
        if one.start() < skip:
            continue
        if one["fence"] or one["ticks"]:
            closing = after[place]
            if closing is not None and (one["fence"] or "\n" not in text[one.end() : closing.start()]):
                skip = closing.end()
            elif one["fence"]:
                # Without an end, only what follows without a thought is code.
                skip = one.end()
            continue
        before, behind = text[max(0, one.start() - 1) : one.start()], text[one.end() : one.end() + 1]
        if before in _QUOTES and behind in _QUOTES:
            continue
        name = one["xml"] or one["bracket"]
        if name:  # of one family, because small models end one by the name of another
            family, begins = "named", not (one["close"] or one["shut"])
        elif one["details"] or one["undetails"]:
            family, begins = "details", bool(one["details"])
        else:
            family, begins = "marked", bool(one["begin"])
        yield _Tag(one.start(), one.end(), family, begins)
        if begins and one["empty"]:  # `<think/>`
            yield _Tag(one.end(), one.end(), family, begins=False)


def _find_same_after(found: Sequence[re.Match[str]]) -> list[re.Match[str] | None]:
    """Return for each mark of code the next one like it."""
    seen: dict[str, re.Match[str]] = {}
    after: list[re.Match[str] | None] = [None] * len(found)
    for place in range(len(found) - 1, -1, -1):
        mark = (found[place]["fence"] or "").strip()[:3] or found[place]["ticks"]
        if mark:
            after[place] = seen.get(mark)
            seen[mark] = found[place]
    return after


def _match_ends(tags: Sequence[_Tag]) -> Mapping[int, _Tag]:
    """Return the end of each beginning that has one, by the place of the beginning."""
    open_by_family: dict[str, list[_Tag]] = {}
    last: dict[str, _Tag] = {}
    ends: dict[int, _Tag] = {}
    for tag in tags:
        waiting = open_by_family.setdefault(tag.family, [])
        if tag.begins:
            waiting.append(tag)
            continue
        last[tag.family] = tag
        if waiting:
            ends[waiting.pop().start] = tag
    for family, waiting in open_by_family.items():
        for tag in waiting:  # its end was taken by a beginning that the thought quotes
            if family in last and last[family].start > tag.start:
                ends[tag.start] = last[family]
    return ends


def _begins_thought(text: str, tag: _Tag, end: _Tag | None) -> bool:
    """Return whether a tag begins a thought; else a sentence quotes it."""
    if tag.start and text[tag.start - 1] in _QUOTES:
        return False
    if tag.family == "details":
        return True
    if end is not None and _ORDINARY.search(text, tag.start, tag.end) and _is_data(text, tag, end):
        return False
    content = text[tag.end : min(tag.end + _HEAD, len(text) if end is None else end.start)]
    words = content.split()
    talked_about = _TALKED_ABOUT.match(content) is not None
    if tag.family == "marked":  # which no text for people has but one about them
        return not talked_about or end is not None
    before = text[max(0, tag.start - _HEAD) : tag.start].rpartition("\n")[2].rstrip()
    if not before:
        return not talked_about or (end is not None and len(words) >= _FEW_WORDS)
    first = content.lstrip()[:1]
    starts_anew = content[:1] == "\n" or first.isupper()
    if before[-1] in _SENTENCE_ENDS:
        if end is None:
            return not talked_about and starts_anew
        return not talked_about and bool(words)
    attached = bool(content) and not content[0].isspace()
    if end is None:
        return starts_anew and (content[:1] == "\n" or (attached and not text[tag.start - 1].isspace()))
    return len(words) >= _FEW_WORDS and not talked_about and (starts_anew or attached)


def _is_data(text: str, tag: _Tag, end: _Tag) -> bool:
    """Return whether a sentence goes on behind a few words between tags, or they are a part of XML."""
    before, after = text[max(0, tag.start - _HEAD) : tag.start], text[end.end : end.end + _HEAD]
    words = text[tag.end : min(tag.end + _HEAD, end.start)].split()
    if after.lstrip()[:1].islower() and len(words) < _FEW_WORDS:
        return True
    around = (name for name in _ELEMENT.findall(before) if f"</{name}>" in after)
    return any(name.lower() not in _NO_DATA for name in around)


def _find_last_end_alone(text: str, tags: Sequence[_Tag], matched: set[int]) -> int | None:
    """Return where the text goes on after the last end without a beginning that counts; None if none does."""
    for tag in reversed(tags):
        if tag.begins or tag.start in matched or tag.family == "details":
            continue
        before = text[max(0, tag.start - _HEAD) : tag.start].rpartition("\n")[2]
        after = text[tag.end : tag.end + _HEAD].partition("\n")[0]
        ends_sentence = before[-1:] in _SENTENCE_ENDS
        begins_another = not after.strip() or (after[0].isupper() or after[0].isdigit())
        if tag.family == "marked" or not before.strip() or (ends_sentence and begins_another):
            return tag.end
    return None
