"""`hallulab make-data tau-knowledge`: a pack of tau2-bench's banking_knowledge, by rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hallulab.agents.users.user import word_question
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.authoring.tau_knowledge.personas import make_persona
from tests.places import ROOT
from tests.simulator.authoring.tau_checkout import CARD, LICENCE, LOST, make_user, write_checkout
from tests.simulator.command_line import CommandLine

MAKE = ("make-data", "tau-knowledge")
PACK = ROOT / "scenarios" / "packs" / "banking-knowledge"
POND = "doc_credit_cards_pond_card_001"
ORIGIN = "https://github.com/sierra-research/tau2-bench, domain banking_knowledge"

PERSONAS = Path(__file__).with_name("tau_personas.yaml")
"""The personas of the sample, as a person corrected the rules to make them."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    write_checkout(tmp_path / "tau2-bench")
    return tmp_path / "tau2-bench"


def test_a_sample_becomes_these_personas(hallulab: CommandLine, checkout: Path, tmp_path: Path) -> None:
    out = tmp_path / "Pond bank"
    ended = hallulab(*MAKE, checkout, "--out", out)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"3 documents and 2 personas written to {out}\n"
    assert (out / "personas.yaml").read_text() == PERSONAS.read_text()
    assert load_scenario(out).name == "pond-bank"


def test_documents_keep_their_text_and_get_labels(
    hallulab: CommandLine, checkout: Path, tmp_path: Path
) -> None:
    assert hallulab(*MAKE, checkout, "--out", tmp_path / "p").code == 0
    made = tmp_path / "p" / "documents" / "credit-cards-credit-cards-general-002.md"
    assert made.read_text() == (
        "---\n"
        "title: 'Internal: Lost Cards'\n"
        "source: Rho-Bank, doc_credit_cards_credit_cards_(general)_002 (tau2-bench, banking_knowledge)\n"
        "sector: credit-cards\n"
        "topic: credit-cards-credit-cards-general\n"
        "---\n\n"
        "Call `block_card_7` to block a lost card. A new card takes 5 days.\n"
    )


def test_the_pack_has_the_licence_with_its_notice(
    hallulab: CommandLine, checkout: Path, tmp_path: Path
) -> None:
    assert hallulab(*MAKE, checkout, "--out", tmp_path / "p", "--commit", "abc").code == 0
    assert load_scenario(tmp_path / "p").licence == "MIT"
    assert (tmp_path / "p" / "LICENSE.txt").read_text() == (
        f"Documents and personas are made from {ORIGIN}, commit abc. Its licence:\n\n{LICENCE}"
    )


@pytest.mark.parametrize(
    ("documents", "users", "names"),
    [
        (1, 1, ["credit-cards-credit-cards-general-002"]),
        (2, 1, ["credit-cards-credit-cards-general-002", "credit-cards-pond-card-001"]),
        (2, 2, ["credit-cards-credit-cards-general-002", "credit-cards-pond-card-001"]),
    ],
)
def test_those_who_require_the_fewest_documents_come_first_and_the_nearest_documents(
    hallulab: CommandLine, checkout: Path, tmp_path: Path, documents: int, users: int, names: list[str]
) -> None:
    numbers = ("--documents", str(documents), "--users", str(users))
    assert hallulab(*MAKE, checkout, "--out", tmp_path / "p", *numbers).code == 0
    made = load_scenario(tmp_path / "p")
    assert [one.name for one in made.documents] == names
    assert [one.id for one in made.personas] == ["task-001", "task-010"][:users]


def test_customers_without_a_name_or_a_goal_are_left_out(
    hallulab: CommandLine, checkout: Path, tmp_path: Path
) -> None:
    folder = next(checkout.rglob("tasks"))
    for number, text in ((2, "Be friendly."), (3, "**Your character:** Ann Lee, a cook.")):
        user = make_user(f"task_00{number}", text, [POND])
        (folder / f"task_00{number}.json").write_text(json.dumps(user))
    ended = hallulab(*MAKE, checkout, "--out", tmp_path / "p")
    assert ended.out.startswith("3 documents and 2 personas ")
    assert ended.err == (
        "left out: task_002: its instructions do not say `Your character: NAME, a …`\n"
        "left out: task_003: its instructions have no goal that the rules can read\n"
    )


def test_a_folder_that_is_no_checkout_is_refused(hallulab: CommandLine, tmp_path: Path) -> None:
    ended = hallulab(*MAKE, tmp_path, "--out", tmp_path / "p")
    assert (ended.code, ended.err) == (
        2,
        f"error: {tmp_path}: has no folder data/tau2/domains/banking_knowledge/documents, so "
        "it is no checkout of tau2-bench with banking_knowledge. Name the folder of a whole checkout.\n",
    )


WRONG: list[tuple[dict[str, Any] | str, str]] = [
    ("{", "is no valid JSON (Expecting property name enclosed in double quotes"),
    ({"id": "task_7"}, "user_scenario: this key is missing. Add it"),
    (make_user("task_7", {"task": "x"}, ["d"]), "user_scenario.instructions: must be text, not an object."),
    (make_user("task_7", LOST, []), "required_documents: "),
    (make_user("task_7", LOST, ["x"]), 'required_documents: no document has the id "x". Correct it, or'),
    (make_user("Task-001", LOST, [POND]), "id: would be called task-001, as that"),
    (make_user("../..", LOST, [POND]), "id: has no letter and no digit"),
]


def test_a_document_without_a_text_is_named_by_its_own_file(
    hallulab: CommandLine, checkout: Path, tmp_path: Path
) -> None:
    path = next(checkout.rglob("documents")) / "blank.json"
    path.write_text(json.dumps({"id": "doc_blank_001", "title": "Blank", "content": " \n "}))
    ended = hallulab(*MAKE, checkout, "--out", tmp_path / "p")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith(f"error: {path}: content: ")


@pytest.mark.parametrize(("content", "complaint"), WRONG, ids=[complaint for _, complaint in WRONG])
def test_a_wrong_task_is_one_sentence(
    hallulab: CommandLine, checkout: Path, tmp_path: Path, content: dict[str, Any] | str, complaint: str
) -> None:
    path = next(checkout.rglob("tasks")) / "task_007.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    ended = hallulab(*MAKE, checkout, "--out", tmp_path / "p")
    assert ended.code == 2
    assert ended.err.startswith(f"error: {path}: {complaint}")
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "p").exists()


def test_too_few_documents_are_refused(hallulab: CommandLine, checkout: Path, tmp_path: Path) -> None:
    ended = hallulab(*MAKE, checkout, "--out", tmp_path / "p", "--documents", "1")
    assert (ended.code, ended.err) == (
        2,
        "error: --documents 1: the 2 customers require 2 documents, and there are 3. "
        "Give a number between.\n",
    )


def test_names_in_the_data_make_no_paths(hallulab: CommandLine, checkout: Path, tmp_path: Path) -> None:
    hostile = {"id": "../../Escape", "title": "t\n---\nx", "content": "Text."}
    (next(checkout.rglob("documents")) / "hostile.json").write_text(json.dumps(hostile))
    assert hallulab(*MAKE, checkout, "--out", tmp_path / "p").code == 0
    assert (tmp_path / "p" / "documents" / "escape.md").is_file()
    assert [one.title for one in load_scenario(tmp_path / "p").documents if one.name == "escape"] == [
        "t --- x"
    ]


def test_a_link_out_of_the_checkout_is_not_read(
    hallulab: CommandLine, checkout: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.json").write_text("{}")
    link = next(checkout.rglob("documents")) / "link.json"
    link.symlink_to(tmp_path / "secret.json")
    ended = hallulab(*MAKE, checkout, "--out", tmp_path / "p")
    assert (ended.code, str(link) in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("said", "goal"),
    [
        ("Can you show me my recent transactions?", "how to see his recent transactions"),
        ("Can I do this through the app?", "whether he can do this through the app"),
        ("Could you please send it to my office?", "whether the bank can send the card to his office"),
        ("What's your best savings account?", "what the bank's best savings account is"),
        ("Is there a form I need to fill out?", "whether there is a form he needs to fill out"),
        ("Do you have any accounts for students?", "whether the bank has any accounts for students"),
        ("I'd like to close my Pond Card because I'm leaving.", "how to close his Pond Card"),
        ("My card still isn't here. What's going on?", "why his card still isn't here"),
        ("I think some of my points might be wrong.", "whether some of his points might be wrong"),
        ("Where is my deposit?!", "where his deposit is"),
    ],
)
def test_a_first_message_becomes_a_goal(said: str, goal: str) -> None:
    text = f'**Your character:** Kenji Ode, a cook.\n\n## Conversation Flow:\n\n1. **Opening:** "{said}"\n'
    assert make_persona("k", text, None).goals == (f"Learn {goal}",)


def test_rules_read_the_sample_as_a_person_would() -> None:
    robin = make_persona("robin", CARD, "credit-cards")
    assert [word_question(goal) for goal in robin.goals] == [
        "Can you tell me which credit card to use for the trips?",
        "Can you tell me which card has the lowest annual fee?",
    ]


def test_the_built_in_pack_is_a_subset_as_documented() -> None:
    """24 customers and four of ours, 61 documents, and each customer's required documents among them."""
    pack = load_scenario("banking-knowledge")
    assert (len(pack.documents), len(pack.personas), pack.licence) == (61, 28, "MIT")
    required = re.findall(
        r"^  # task_\d+; documents: (.+)$", (PACK / "personas.yaml").read_text(), re.MULTILINE
    )
    named = {name for line in required for name in line.split(", ")}
    assert (len(required), len(named)) == (24, 36)
    assert named <= {document.name for document in pack.documents}


def test_the_built_in_pack_has_the_notice_of_its_source() -> None:
    text = (PACK / "LICENSE.txt").read_text()
    assert "Copyright (c) 2025 Sierra Research" in text
    assert "commit a2c024725189473d2d7cea3a5cfdbcc67478e41f" in text


def test_personas_of_the_built_in_pack_are_of_the_third_person_and_mail_nobody() -> None:
    for persona in load_scenario("banking-knowledge").personas:
        texts = [persona.grievance, *persona.goals, *persona.facts, persona.manner, persona.summary]
        assert [one for one in texts if re.search(r"\b(?:you|your|I|my|me)\b|\bagents?'s\b", one)] == []
        assert all(goal.startswith("Learn ") and word_question(goal).endswith("?") for goal in persona.goals)
        mails = re.findall(r"@([\w.-]+)", yaml.safe_dump(texts))
        assert set(mails) <= {"example.com"}
