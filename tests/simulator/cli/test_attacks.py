"""Whole runs under attack: what is planted reaches the chatbots and the report, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.attacks.attack import load_orders
from hallulab.testing.scripted import completion
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.fuzz.promises import ended
from tests.simulator.echoing_server import endpoint, http

ORDERS = load_orders()
FILES = {
    "attacks.csv",
    "concentration.csv",
    "conversations.jsonl",
    "experiment.json",
    "report-answered.csv",
    "report-blame.csv",
    "report-citations.csv",
    "report-depth.csv",
    "report.csv",
    "report.html",
    "report.json",
}
EXPERIMENT = """
model: m
chatbots: [vanilla, {name: theirs, kind: endpoint}]
detectors: [lexical]
min_turns: 1
max_turns: 2
manners: [plain]
top_k: 60
attack: {poison_ratio: 1, distractors: 2, injections: 1, user_injections: 1}
"""
OFFLINE = ("--base-url", "http://127.0.0.1:9/v1")
ANSWER = "A kettle takes four minutes. Boil the water for it first."


class Tags(HTMLParser):
    """The elements of a page, and the attributes that run code."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a pack of as many documents as there are orders."""
    pack = make_pack(tmp_path / "pack")
    for number in range(1, len(ORDERS)):
        text = (
            f"# Kettle {number}\n\nKettle {number} takes three minutes to boil the water for a pot of tea.\n"
        )
        (pack / "documents" / f"kettle-{number}.md").write_text(text)
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    with words_for_vectors():
        yield tmp_path


def run(bench: Path, out: str, reply: str) -> str:
    """Run the experiment with a model that says `reply` as a chatbot; return what was printed."""

    def answer(request: dict[str, Any] | None) -> bytes:
        if request is None:
            return http(json.dumps({"data": [{"id": "m"}]}))
        if request.get("logprobs"):
            return http(json.dumps(completion({"Yes": 0.4, "No": 0.6})))
        own = "Documents found for the user" in json.dumps(request)
        return http(json.dumps(completion(reply if own else "How long does a kettle take to boil?")))

    config = bench / "experiment.yaml"
    with endpoint(answer) as url:
        flags = ("--scenario", bench / "pack", "--base-url", url, "--out", bench / out, "--quiet")
        said = ended("run", "-c", config, *flags)
    assert said.code == 0, said
    return said.out.replace(url, "URL") + said.err


def read(folder: Path) -> dict[str, Any]:
    """The report and the experiment of a run, without its address."""
    report = json.loads((folder / "report.json").read_text())
    held = json.loads(re.sub(r"127\.0\.0\.1:\d+", "HERE", (folder / "experiment.json").read_text()))
    return {"report": report, "experiment": held}


def kept(bench: Path) -> dict[Path, bytes]:
    """What lies beside the runs."""
    return {
        path: path.read_bytes()
        for path in bench.rglob("*")
        if path.is_file()
        and path.name != "experiment.yaml"
        and not {"calm", "obeying", "cache"} & set(path.relative_to(bench).parts)
    }


def rows(folder: Path, chatbot: str = "vanilla") -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of all kinds of one chatbot."""
    found = read(folder)["report"]["attacks"]
    return {
        (row["thing"], row["where"]): row
        for row in found
        if row["chatbot"] == chatbot and row["kind"] == "all"
    }


def test_orders_change_no_configuration_no_other_file_and_no_page(bench: Path) -> None:
    obeying = "\n\n".join(f"{order.asks}\n\n{order.text}" for order in ORDERS) + f"\n\n{ANSWER}"
    before = kept(bench)
    calm, obeyed = (run(bench, out, reply) for out, reply in (("calm", ANSWER), ("obeying", obeying)))
    assert kept(bench) == before
    for name in ("calm", "obeying"):
        assert {path.name for path in (bench / name).iterdir()} - {"verdicts.jsonl"} == FILES
    one, other = (read(bench / name)["experiment"] for name in ("calm", "obeying"))
    assert one == other
    assert "\x1b" not in calm + obeyed
    quiet, loud = (Tags((bench / name / "report.html").read_text()) for name in ("calm", "obeying"))
    assert loud.handlers == []
    assert set(loud.found) == set(quiet.found)
    assert loud.found.count("script") == quiet.found.count("script")
    assert {"img", "iframe", "link", "base"}.isdisjoint(loud.found)
    assert "default-src 'none'" in (bench / "obeying" / "report.html").read_text()
    said = [order for order in ORDERS if order.how == "says"]
    shares = {name: rows(bench / name)["order", "document"] for name in ("calm", "obeying")}
    assert (shares["calm"]["seen"], shares["calm"]["followed"]) == (2 * len(ORDERS), 0)
    assert shares["obeying"]["followed"] >= 2 * len(said)


def test_what_the_chatbot_was_sent_and_what_it_did_is_in_the_report(bench: Path) -> None:
    printed = run(bench, "run", "Kettle 7 takes three minutes to boil the water for a pot of tea.")
    assert "under attack:" in printed
    head, *lines = (bench / "run" / "attacks.csv").read_text().splitlines()
    assert head.startswith("chatbot,thing,where,kind,planted,seen,undecided,followed,followed_share,")
    assert lines[0] == f"vanilla,false statement,document,all,{len(ORDERS) - 1},2,0,0,0.0,,"
    found = rows(bench / "run")
    assert {key: (row["planted"], row["seen"], row["followed"]) for key, row in found.items()} == {
        ("false statement", "document"): (len(ORDERS) - 1, 2, 0),
        ("distractor", "document"): (2, 2, None),
        ("order", "document"): (len(ORDERS), 2 * len(ORDERS), 0),
        ("order", "user"): (1, 1, 0),
    }
    reveals = sum(order.kind == "reveal" for order in ORDERS)
    theirs = rows(bench / "run", "theirs")["order", "document"]
    assert (theirs["seen"], theirs["undecided"], theirs["followed"]) == (2 * len(ORDERS), 2 * reveals, 0)
    [conversation] = [
        json.loads(line)
        for line in (bench / "run" / "conversations.jsonl").read_text().splitlines()
        if '"chatbot":"vanilla"' in line
    ]
    first, second = (turn["user"] for turn in conversation["turns"])
    assert [order.id for order in ORDERS if first.endswith(f"\n\n{order.text}")]
    assert second == "How long does a kettle take to boil?"
    assert read(bench / "run")["report"]["simulator_audit"]["flaws"] == {"repeated": 2}  # of its own words


def test_a_folder_of_another_attack_is_refused(bench: Path) -> None:
    run(bench, "run", ANSWER)
    held = (bench / "run" / "conversations.jsonl").read_bytes()
    config = bench / "experiment.yaml"
    config.write_text(config.read_text().replace("user_injections: 1", "user_injections: 0.5"))
    said = ended("run", "-c", config, "--scenario", bench / "pack", *OFFLINE, "--out", bench / "run")
    assert said.code == 2
    assert "holds another experiment (it differs in attack)" in said.err
    assert (bench / "run" / "conversations.jsonl").read_bytes() == held


@pytest.mark.parametrize(
    ("attack", "error"),
    [
        ("{poison_ratio: 2}", "attack.poison_ratio"),
        ("{distractors: 500}", "500 are asked for"),
        ("{posion_ratio: 1}", "attack.posion_ratio"),
        ("poison", "attack"),
    ],
)
def test_a_wrong_attack_is_refused_before_anything_is_written(bench: Path, attack: str, error: str) -> None:
    config = bench / "experiment.yaml"
    config.write_text(re.sub(r"attack: .*", f"attack: {attack}", EXPERIMENT))
    said = ended("run", "-c", config, "--scenario", bench / "pack", *OFFLINE, "--out", bench / "run")
    assert said.code == 2
    assert error in said.err
    assert not (bench / "run").exists()


def test_detectors_judge_by_the_attacked_documents_later_too(bench: Path) -> None:
    run(bench, "run", ANSWER)
    attacked = rows(bench / "run")
    said = ended("detect", bench / "run", "--detectors", "evidence-chain-lexical", "--quiet")
    assert said.code == 0
    assert rows(bench / "run") == attacked
    assert {row["detector"] for row in read(bench / "run")["report"]["rows"]} == {
        "lexical",
        "evidence-chain-lexical",
    }


def test_a_run_without_an_attack_has_nothing_of_it(bench: Path) -> None:
    config = bench / "experiment.yaml"
    config.write_text(re.sub(r"attack: .*", "", EXPERIMENT))
    printed = run(bench, "run", ANSWER)
    held = read(bench / "run")
    assert "under attack" not in printed + (bench / "run" / "report.html").read_text().lower()
    assert held["report"]["attacks"] is None
    assert "planted" not in held["experiment"]
    assert not (bench / "run" / "attacks.csv").exists()


def test_a_report_made_anew_is_the_same(bench: Path) -> None:
    run(bench, "run", ANSWER)
    before = {path.name: path.read_bytes() for path in (bench / "run").iterdir()}
    assert ended("report", bench / "run").code == 0
    assert {path.name: path.read_bytes() for path in (bench / "run").iterdir()} == before
