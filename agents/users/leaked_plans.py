"""Find plans of the model that plays a user in what the user says, without tags around them.

Models that think write how they will play the user into the message itself: what the assistant said, what to
ask next, in which tone. Also notes and stage directions. One clear sign is enough; of signs that a person in
this situation may give, too, there must be two. The rules are ours, written after leaks that users of other
simulators reported. `tests/agents/users/leaked_plans.yaml` has examples, and innocent messages.
"""

from __future__ import annotations

import re

from hallulab.agents.users.phrases import Phrases

_ROLE = (
    "(?:user|customer|caller|client|patient|passenger|tenant|buyer|guest|visitor|reader|shopper|persona|human"
    "|student|travell?er|member|consumer|complainant|citizen)"
)
_BOT = "(?:assistant|agent|bot|chatbot|representative)"
_PLAY = "(?:respond|reply|answer|speak|act|play|continue|go on|write|talk|behave|pose|stay)"
_TEXT = "(?:message|reply|response|turn|input|utterance|line)"
_CHAT = "(?:conversation|dialogue|chat)"
_MOOD = (
    "angr(?:y|ily)|frustrated|annoyed|irritated|confused|worried|anxious|impatient(?:ly)?|polite(?:ly)?"
    "|calm(?:ly)?|sarcastic(?:ally)?|nervous(?:ly)?|upset"
)


_CLEAR = Phrases(
    # how to play the user
    rf"\b(?:must|should|need to|have to|will|'ll|let's|let me|to)(?: now)? {_PLAY}(?: \w+)? as (?:the"
    rf"|an?) (?:\w+ )?{_ROLE}\b",
    r"\bin the role of (?:the|an?)\b",
    rf"\bplay (?:the|an?) (?:\w+ )?{_ROLE}\b",
    r"\bmy role is the\b",
    r"\bplaying the role of\b",
    r"^as \w+(?: \w+)?, i(?:'d| would| will|'ll) (?:say|ask|reply)\b",
    rf"\bas the {_ROLE}, (?:i (?:will|should|must|need|would|am going|can now)|my next)\b",
    rf"\bi(?:'m| am) the (?:user|customer|human), not the {_BOT}\b",
    rf"\bwe are the {_ROLE}\b",
    rf"\b(?:what|how) (?:the|an?|this) (?:\w+ )?{_ROLE} (?:would|might|should|could) (?:say|ask|answer"
    rf"|reply|respond)\b",
    r"\b(?:real|realistic|typical|normal|natural) (?:user|customer|person|caller) would\b",
    r"\b(?:break(?:ing)?|in|out of) character\b",
    r"^[^\w\n]{0,9}speaking as \w+(?: \w+)?\s*[:,]",
    r"\bthe (?:persona|character) (?:would|should|must|is|has|wants|will|does|knows)\b",
    r"(?:^|[.!?:\n] ?)(?:now |okay,? |so |here,? |hmm,? )?the user (?:is|should|must|would|will|might"
    r"|wants|needs|feels|seems|thinks|knows|follows|challenges|complains|continues|responds|replies|asks"
    r"|says|has (?:to|now|already))\b",
    r"\bsound(?:ing)? like (?:an ai|a bot|a robot|a chatbot)\b",
    r"\b(?:following|given|matching|per) (?:the|my) (?:scenario|script|persona|role)\b",
    # what to write
    rf"\b(?:i|we|let me|let's)(?:'ll| will| should| must| need to| have to| now)* (?:write|produce"
    rf"|compose|output|send|give|reply with|respond with|answer with) (?:an?|one|the) (?:single|short"
    rf"|brief|natural|final|realistic|simple) (?:sentence|question|{_TEXT})\b(?! to (?:my|the|them|him"
    rf"|her)\b)",
    r"\b(?:i|we|let me|let's)(?:'ll| will| should| must| need to| have to| now)* (?:respond|reply"
    r"|answer) (?:naturally|briefly|politely|casually|in (?:the voice|one|a single|character|first))\b",
    rf"\b(?:keep|make) (?:the|my|this) (?:tone|{_TEXT}) (?:\w+ )?(?:casual|short|brief|natural|polite"
    rf"|informal|simple|calm|angry|neutral|concise|curt)\b",
    r"(?:^|[.!?\n] ?)(?:stay|be|remain) (?:brief|polite|calm|concise|consistent|vague|natural|casual"
    r"|curt|short)[.,;]",
    rf"\b(?:my|the|user's|their) (?:next|opening) {_TEXT}\b",
    rf"\bnext {_TEXT} (?:should|must|will|needs"
    rf"|is)\b",
    rf"\b(?:craft|produce|compose|formulate|generate|output) (?:only )?(?:an?|the|my|one|this)(?: "
    rf"\w+){{0,3}} (?:{_TEXT}|question)\b",
    rf"\bthe {_ROLE}'s (?:next )?(?:{_TEXT}|question)\b",
    rf"\b{_ROLE}'s next {_TEXT}\b",
    rf"\b(?:next {_ROLE} {_TEXT}|{_TEXT} from the {_ROLE})\b",
    r"\boutput only the\b",
    r"\bsend (?:the )?(?:message|reply)(?: is)?:? [\"'\u201c]",
    r"\bbest continuation\b",
    rf"\b(?:wrap up|continue|steer|open|close) (?:the|this) {_CHAT}\b",
    rf"\bnext (?:step|move) (?:in|of) "
    rf"(?:the|this) {_CHAT}\b",
    r"\b(?:before|until|in|by|at|on) turn (?:\d|one|two|three|four|five)\b",
    r"\bshould not reveal\b",
    # what the model was told
    r"\b(?:developer|system) (?:instructions?|message|prompt)\b",
    r"\bthe user wants me\b",
    r"\bnote to self\b",
    r"\b(?:test|this) scenario (?:is|says|wants|requires)\b",
    r"\b(?:according to|in|per|as) the (?:test "
    r")?scenario\b",
    r"\b(?:per|according to|as) my instructions\b",
    r"\bmy backstory\b",
    r"\bthe facts (?:that )?i was given\b",
    r"\binstructions (?:tell|told|ask|want) me (?:not )?to (?:thank|ask|say|mention|reveal|play|be|greet"
    r"|act|pretend|stay|keep|sound|speak|complain|insist)\b",
    r"\b(?:prompt|brief|backstory|role description) (?:says|tells|states|describes|wants|asks"
    r"|requires)\b",
    rf"\b{_BOT} under test\b",
    r"\bto simulate an?\b",
    r"\b(?:test|probe) (?:the|whether the) (?:chat)?bot(?:'s)?\b",
    r"^[^\w\n]{0,9}ooc\s*:",
    # headings and tags
    r"^[^\w\n]{0,9}(?:thinking|thoughts?|reasoning|scratchpad|internal(?: \w+)?|draft|user|needs?"
    r"|(?:(?:final|my|next|user|possible|suggested|sample|best) )?(?:message|response|reply"
    r"|utterance)(?: to send)?|(?:possible|suggested|next|user|my|follow-up) question|final answer|rationale"
    r"|turn \d|user's (?:response|reply|message)|(?:response|reply) as \w+)\s*:",
    r"\bnote: (?:this keeps|i(?:'ve| have)? kept|the (?:tone|user|persona))\b|\blet's think step by step\b",
    r"^[^\w\n]{0,9}(?:plan|analysis|strategy|next steps?|goals?)\s*:\s*(?:i (?!come|go|am|have)|ask|the "
    r"|first|mention|get|keep|stay|express)",
    r"</?(?:user|customer|message|reply)(?:[ _-](?:message|turn|reply))?>",
)
_DIRECTION = re.compile(
    r"(?:^|(?<=[.!?]\s))[ \t]*(?:\*(?!\*)([^*\n]{3,60})\*|\[([^\]\n]{3,60})\]|\(([^)\n]{3,60})\))",
    re.MULTILINE,
)
"""Where a stage direction may stand."""
_ACTING = Phrases(
    r"^(?:sigh|paus|typ(?:es|ing)|think|look|smil|nod|frown|wait(?:s|ing)|laugh|hesitat|clear(?:s|ing)"
    r"|lean|roll|shak(?:es|ing)|scratch|check(?:s|ing)|groan|shrug|whisper|shout|speak|sound|chuckl"
    r"|cr(?:ies|ying)|mutter|grumbl|takes a)",
    rf"^(?:very |slightly |a bit )?(?:{_MOOD})(?:$|,| but\b| and\b)",
    r"\b(?:tone|voice)$",
)
_LIKELY = tuple(
    Phrases(pattern)
    for pattern in (
        rf"\b(?:the|this) {_BOT}(?: has| just| already)? (?:says|said|asked|asks|wants|expects|gave|replied"
        rf"|responded|answered|offered|told|provided|mentioned|explained|is asking|did not|didn't)\b",
        r"\b(?:the|this) (?:user|customer|caller) (?:has|is|should|would|wants|needs|will|must|asks|probes"
        r"|now)\b",
        r"\b(?:i|we) (?:should|must|need to|have to|'ll|will) (?:now |next |also |then )?(?:ask|press|push"
        r"|bring|choose|mention|express|stay|sound|keep|open|say|pretend|introduce|follow up|insist)\b"
        r"|\bi'd push\b",
        rf"(?:^|[.!?]\s+)(?:okay|ok|alright|hmm|well)[,.] (?:so |now )?(?:let's|time to|the (?:{_BOT}|reply"
        rf"|answer|response)|(?:i|we) (?:have (?:asked|to respond)|should|need to (?:respond|reply|ask)))\b",
        r"\b(?:so|next|now),? (?:i|we) (?:should|must|open|ask|introduce|need to (?:ask|respond|reply"
        r"|mention))\b|\bi(?:'ll| will) (?:say|make one up|invent)\b|\bmake (?:one|it|something) up\b|\bi "
        r"pretend\b|\bas instructed, i\b|\bi(?:'ll| will| should) (?:now )?(?:hand over|reveal|disclose"
        r"|push back)\b|\bmoving on to\b|\b(?:so|therefore),? (?:give|ask|avoid|use|few words|formal"
        r"|informal|keep)\b",
        r"\bthe (?:last |previous |latest )?(?:answer|reply|response) (?:satisf|cover|skip|address|omit|is "
        r"vague|was vague|does not|did not|lacks|mention)|\bgave a vague\b",
        r"\bgoal (?:is |was |has been )?(?:not )?(?:yet )?(?:reached|met|done)\b|\bstill need to (?:ask"
        r"|find out|learn)\b|\b(?:first|second|third|next|last|remaining|open|current) goal\b",
        r"\b(?:has|have) not (?:yet )?(?:learned|told|asked|mentioned|said)\b|\bis not in the facts\b",
        r"\b(?:realistic|natural|consistent|in the first person|in lowercase|the tone|keep it (?:short|brief"
        r"|natural)|short and (?:polite|natural)|stay (?:polite|consistent)|one short|no greeting"
        r"|(?:in)?formal language|few words|one question|sound like|from the (?:user|customer)'s "
        r"(?:perspective|point of view))\b|\bdo not mention\b|\bsupposed to be an? \w+ \w+ here\b",
        rf"\b{_CHAT} (?:just|has just|so far|starts|started|begins)\b|\bfirst message\b|\bnext is the\b"
        rf"|\bfollow-up\b",
        r"^[^\w\n]{0,9}so:\s|\bsomething like: [\"'\u201c]|\bwould fit\b|\bthe system says i am\b",
    )
)
_ENOUGH = 2


def find_leaked_plan(text: str) -> str | None:
    """Return words that show a plan of the model that plays the user, a note or a stage direction; else None.

    Args:
        text: what the user says, with straight quotation marks.
    """
    clear = _CLEAR.find(text)
    if clear is not None:
        return clear.strip()
    for found in _DIRECTION.finditer(text):
        inner = next(group for group in found.groups() if group is not None).strip()
        if _ACTING.find(inner) is not None:
            return found[0].strip()
    likely = [sign.strip() for pattern in _LIKELY if (sign := pattern.find(text)) is not None]
    return " … ".join(likely[:_ENOUGH]) if len(likely) >= _ENOUGH else None
