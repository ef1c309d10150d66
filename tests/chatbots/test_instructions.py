"""The instructions of chatbots, as far as they are known."""

from __future__ import annotations

from hallulab.chatbots.registry import collect_instructions


def test_our_chatbots_have_their_prompts_without_what_is_filled_in() -> None:
    texts = collect_instructions("vanilla", {})
    assert texts is not None
    assert "Documents found for the user's last message:" in " ".join(texts)
    assert "politely decline other topics" in " ".join(texts)
    assert not [text for text in texts if "{{" in text or "\x00" in text]


def test_an_endpoint_has_the_prompt_that_it_is_sent() -> None:
    assert collect_instructions("endpoint", {"system": "Be brief."}) == ("Be brief.",)
    assert collect_instructions("endpoint", {}) is None


def test_those_of_other_bots_are_not_known() -> None:
    assert collect_instructions("callable", {"target": "m:f"}) is None
    assert collect_instructions("somebody-elses", {}) is None


def test_a_guarded_chatbot_has_those_of_the_one_that_it_wraps() -> None:
    assert collect_instructions("guarded", {"chatbot": "editor"}) == collect_instructions("editor", {})
    assert (
        collect_instructions("guarded", {"chatbot": {"kind": "callable", "options": {"target": "m:f"}}})
        is None
    )
