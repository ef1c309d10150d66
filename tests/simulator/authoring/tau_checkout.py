"""A made sample of tau2-bench's layout: three documents, two customers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCUMENTS = {
    "doc_credit_cards_pond_card_001": ("Pond Card: Terms", "## Terms\n\nThe Pond Card has no annual fee."),
    "doc_credit_cards_credit_cards_(general)_002": (
        "Internal: Lost Cards",
        "Call `block_card_7` to block a lost card. A new card takes 5 days.",
    ),
    "doc_savings_accounts_reed_account_001": ("Reed Account", "The Reed Account pays 2% interest a year."),
}
LOST = """\
**Your character:** You are Sofia Brandt, a baker in Hull. You're usually calm but today you are worried.

**Your situation:** You lost your Pond Card on the train. You've looked everywhere and haven't found it.

**Your goal:** Get your card blocked AND order a new card because you travel next week.

**Information you know and should provide when asked:**
- Your full name: Sofia Brandt
- Your email: sofia@brandt-bread.com
- You do NOT have a second card (do not volunteer this)

## Conversation Flow:

1. **Opening:** "Hi, I lost my Pond Card. How do I block it?"

2. **If the agent explains:** Say something like: "How long do I have to wait for the delivery?"

3. **Escalate:** If the agent refuses, demand to be transferred to a human agent.
"""
CARD = """\
You are playing the role of a customer. Your character is a teacher named Robin Ash who earns $40,000. \
You do NOT have a Rho-Bank+ subscription.

You're looking for a credit card to use for your trips. You want the card with the lowest annual fee. \
Don't dump all your information at once.
"""
USERS = {
    "task_001": (LOST, ["doc_credit_cards_credit_cards_(general)_002"]),
    "task_010": (CARD, ["doc_credit_cards_pond_card_001", "doc_credit_cards_credit_cards_(general)_002"]),
}
LICENCE = "MIT License\n\nCopyright (c) 2026 Somebody\n"


def make_user(identifier: str, instructions: Any, required: list[str]) -> dict[str, Any]:
    """Return a customer with keys that the reader does not need."""
    return {
        "id": identifier,
        "user_scenario": {"persona": None, "instructions": instructions},
        "evaluation_criteria": {"actions": []},
        "required_documents": required,
    }


def write_checkout(folder: Path) -> Path:
    """Write the sample, and return the folder of the domain."""
    domain = folder / "data" / "tau2" / "domains" / "banking_knowledge"
    for name in ("documents", "tasks"):
        (domain / name).mkdir(parents=True)
    (folder / "LICENSE").write_text(LICENCE)
    for key, (title, content) in DOCUMENTS.items():
        text = json.dumps({"id": key, "title": title, "content": content})
        (domain / "documents" / f"{key}.json").write_text(text)
    for key, (instructions, required) in USERS.items():
        (domain / "tasks" / f"{key}.json").write_text(json.dumps(make_user(key, instructions, required)))
    return domain
