"""Bad input from the command line: one sentence, the right exit code, no traceback, nothing lost."""

from __future__ import annotations

import socket
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from hallulab.agents.serving.server import reserved_port
from hallulab.detectors.registry import DETECTORS
from hallulab.scenarios.errors import OperationalError
from tests.builders import journal
from tests.simulator.command_line import CodeAndError


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


OUT = "--out HERE/run"
HERE_ASKED = "--base-url http://127.0.0.1:9/v1 --model m"
"""An endpoint that nobody serves. Nor does anybody serve the model `qwen-9000`."""
OTHER = {"other.jsonl": '{"kind":"other","key":"another","answer":1}\n'}
NO_DETECTOR = f"error: there is no detector 'halu'; there are: {', '.join(DETECTORS)}.\n"
EMPTY = (
    "error: HERE/e.yaml is empty. Name in it what to run (docs/experiment.md), or leave it out for the "
    "defaults.\n"
)


@pytest.mark.parametrize(
    ("command", "files", "said"),
    [
        (
            "--chatbots vanila",
            {},
            "error: there is no chatbot 'vanila' (did you mean `vanilla`?); there are: vanilla, ",
        ),
        (
            "-c HERE/e.yaml",
            {"e.yaml": "chatbots: [vanila]\n"},
            "error: HERE/e.yaml, line 1: there is no chatbot 'vanila' (did you mean `vanilla`?); ",
        ),
        (f"--detectors halu {HERE_ASKED} --replay HERE/other.jsonl", OTHER, NO_DETECTOR),
        ("--detectors halu --model qwen-9000", {}, NO_DETECTOR),
        (
            "--personas nobody",
            {},
            "error: scenario consumer-grievance-india has no persona 'nobody'; "
            "`hallulab list personas --scenario consumer-grievance-india` shows them.\n",
        ),
        (
            "--scenario consumer",
            {},
            "banking-knowledge, consumer-grievance-india, migration-labour-rights, nagar-seva, "
            "pregnancy-medication",
        ),
        ("-c HERE/e.yaml", {"e.yaml": "limit: [1\n"}, "error: HERE/e.yaml, line 2: not valid YAML ("),
        *(("-c HERE/e.yaml", {"e.yaml": text}, EMPTY) for text in ("", "# nothing yet\n", "{}\n")),
        (
            "-c HERE/e.yaml --model qwen-9000",
            {"e.yaml": "detectors: [{name: lexical, options: {treshold: 0.5}}]\n"},
            "error: HERE/e.yaml, line 1: detector lexical: there is no option `treshold` (did you mean "
            "`threshold`?); there are: ",
        ),
        (
            f"-c HERE/e.yaml {HERE_ASKED}",
            {"e.yaml": "repeats: 1000000000\nchatbots: [vanilla]\nlimit: 1\n"},
            "error: 1 × 1 × 1000000000 (personas, chatbots, repeats) are 1,000,000,000 conversations, and "
            "one experiment has at most 1,000,000. Lower `repeats` or `limit`.\n",
        ),
        (
            "--base-url localhost:8000/v1 --model m",
            {},
            "error: field `base_url`: 'localhost:8000/v1' is no address; give one with `http://` or "
            "`https://` and a host, such as http://localhost:8000/v1.\n",
        ),
        (
            "--base-url http://127.0.0.1:9/v1",
            {},
            "error: name the model that http://127.0.0.1:9/v1 serves with --model.\n",
        ),
        (
            "--model qwen-9000 --quiet",
            {},
            "error: there is no model 'qwen-9000'. The catalogue has llama-3.1-8b-instruct, ",
        ),
        (
            "--replay HERE/none.jsonl",
            {},
            "error: --replay HERE/none.jsonl: no such recording. Make one with --record HERE/none.jsonl.\n",
        ),
        (
            "--model m --replay HERE/empty.jsonl",
            {"empty.jsonl": ""},
            "error: --replay HERE/empty.jsonl: the file holds no recorded answer. Name a recording that "
            "does, or make one with --record.\n",
        ),
        (
            "--record HERE/a --replay HERE/b",
            {},
            "error: --record and --replay exclude each other: give one of them.\n",
        ),
        (
            f"{HERE_ASKED} -- --max-model-len 4096",
            {},
            "error: `-- --max-model-len`: no server is started here, so it takes no flags.\n",
        ),
    ],
)
def test_a_wrong_word_or_file_is_one_sentence_and_begins_no_run(
    code_and_error: CodeAndError, tmp_path: Path, command: str, files: dict[str, str], said: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code, error = code_and_error(*f"run {OUT} {command}".replace("HERE", str(tmp_path)).split())
    assert (code, error[:7], error.count("\n")) == (2, "error: ", 1)
    assert said.replace("HERE", str(tmp_path)) in error
    assert not (tmp_path / "run").exists()


def test_a_flag_that_does_not_exist(code_and_error: CodeAndError) -> None:
    code, said = code_and_error("run", "--chatbot", "vanilla")
    assert (code, "--chatbots" in said) == (2, True)


def test_a_missing_documents_folder(code_and_error: CodeAndError, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    assert code_and_error("init-scenario", pack) == (0, "")
    (pack / "documents").rename(pack / "papers")
    code, said = code_and_error("run", "--scenario", pack, "--out", tmp_path / "run")
    assert code == 2
    assert said.count("\n") == 1
    assert str(pack / "scenario.yaml") in said
    assert "documents" in said


def test_an_error_holds_nothing_that_a_terminal_obeys(code_and_error: CodeAndError) -> None:
    code, error = code_and_error("bench", "no\x1b[31m.jsonl")
    assert (code, error[:24]) == (2, "error: no�[31m.jsonl: no")


def test_an_unreachable_endpoint(code_and_error: CodeAndError, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    code, said = code_and_error(
        "run", "--base-url", url, "--model", "m", "--out", tmp_path / "run", "--quiet"
    )
    assert code == 1
    assert said.startswith(f"error: no OpenAI-compatible endpoint answers at {url} (")
    assert said.endswith("Start a server (hallulab serve MODEL) or correct --base-url.\n")
    assert not (tmp_path / "run" / "conversations.jsonl").exists()


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
        with pytest.raises(OperationalError, match=rf"^port {port} of 127\.0\.0\.1 is taken"):
            reserved_port(port).__enter__()


def test_an_experiment_file_without_its_flag_gets_it(code_and_error: CodeAndError) -> None:
    told = "error: bots.yaml: write `--config` before an experiment file.\n"
    assert code_and_error("run", "bots.yaml") == (2, told)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (("run", "--chatbots", "vanilla", "metarag"), "metarag"),
        (("run", "--no-judge", "x"), "x"),
        (("detect", "folder", "x", "--detectors", "lexical"), "x"),
        (("bench", "d.jsonl", "d2.jsonl", "--detectors", "lexical"), "d2.jsonl"),
        (("serve", "smollm2-135m", "4096", "--", "--max-model-len", "4096"), "4096"),
        (("init-scenario", "pack", "x"), "x"),
        (("make-data", "hotpotqa-derived", "x", "--data", "d", "--out", "o"), "x"),
    ],
)
def test_a_stray_word_is_no_flag_of_the_server(
    code_and_error: CodeAndError, command: tuple[str, ...], word: str
) -> None:
    name = command[1] if command[0] == "make-data" else command[0]
    assert code_and_error(*command) == (
        2,
        f"error: {word}: `{name}` takes no such word. Lists are separated by commas (a,b), and flags of the "
        "model server stand after `--`.\n",
    )


def test_a_wrong_option_in_a_file_for_detect_names_its_line(
    code_and_error: CodeAndError, tmp_path: Path
) -> None:
    journal(tmp_path, {"scenario": "pregnancy-medication"})
    config = tmp_path / "experiment.yaml"
    config.write_text("seed: 1\ndetectors: [{name: lexical, options: {threshold: 3}}]\n")
    code, said = code_and_error("detect", tmp_path, "-c", config)
    assert code == 2
    assert said.startswith(f"error: {config}, line 2: detector lexical: option `threshold`: input should be")


CALLABLE = "chatbots: [{name: mine, kind: callable, options: {target: 'no_such_bot:answer'}}]\n"
ENDPOINT = (
    "chatbots: [{name: theirs, kind: endpoint, "
    "options: {base_url: 'http://127.0.0.1:9/v1', model: m, api_key_env: THEIR_KEY}}]\n"
)
JUDGE = "models: {judge: {model: m, base_url: 'http://127.0.0.1:9/v1', api_key_env: THEIR_KEY}}\n"
NO_KEY = "http://127.0.0.1:9/v1 needs an API key: set the environment variable THEIR_KEY.\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CALLABLE, "{line}no_such_bot:answer: cannot import no_such_bot from "),
        ("chatbots: [theirs]", "{line}chatbot 'theirs': its constructor raised TypeError: must be real"),
        (ENDPOINT, f"{{line}}{NO_KEY}"),
        (JUDGE, NO_KEY),
    ],
)
@pytest.mark.parametrize("flags", [(), ("--no-judge",)])
def test_who_cannot_take_part_is_said_before_a_server_is_started(
    code_and_error: CodeAndError,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    text: str,
    reason: str,
) -> None:
    points = [EntryPoint("theirs", "math:sqrt", "hallulab.chatbots")]
    monkeypatch.setattr("hallulab.scenarios.components.entry_points", lambda group: points)
    monkeypatch.delenv("THEIR_KEY", raising=False)
    config = tmp_path / "experiment.yaml"
    config.write_text(text)
    code, said = code_and_error(
        "run", *flags, "--model", "qwen-9000", "-c", config, "--out", tmp_path / "run"
    )
    assert code == 2
    assert said.startswith(f"error: {reason.format(line=f'{config}, line 1: ')}")
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_detectors_without_a_model_need_no_key(
    code_and_error: CodeAndError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THEIR_KEY", raising=False)
    config, data = tmp_path / "experiment.yaml", tmp_path / "data.jsonl"
    config.write_text(JUDGE)
    data.write_text('{"reply": "A.", "passages": ["A."], "label": false}\n')
    bench = ("bench", data, "-c", config, "--model", "qwen-9000")
    assert code_and_error(*bench) == (0, "")
    assert code_and_error(*bench, "--detectors", "metarag") == (2, f"error: {NO_KEY}")


def test_bench_judges_at_least_one_reply(code_and_error: CodeAndError, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"reply": "A.", "passages": ["A."], "label": false}\n')
    code, said = code_and_error("bench", data, "--limit", "-1")
    assert code == 2
    assert "--limit" in said


@pytest.mark.parametrize(
    ("meta", "there"),
    [
        ("", "These replies have no `meta`."),
        (', "meta": {"level": "hard", "kind": 1}', "Give one of: kind, level."),
    ],
)
def test_a_field_that_no_reply_has_is_told_before_anything_is_judged(
    code_and_error: CodeAndError, tmp_path: Path, meta: str, there: str
) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"reply": "A.", "passages": ["A."], "label": false' + meta + "}\n")
    assert code_and_error("bench", data, "--by", "source") == (
        2,
        f"error: --by source: no reply has this field in its `meta`. {there}\n",
    )


def test_the_option_that_an_error_advises_exists(code_and_error: CodeAndError, tmp_path: Path) -> None:
    assert code_and_error("bench", "ragtruth", "--data", tmp_path, "--option", "x") == (
        2,
        "error: --option x: give NAME=VALUE, such as --option implicit_true=false.\n",
    )
    code, said = code_and_error("bench", "ragtruth", "--data", tmp_path, "--option", "implicit_true=false")
    assert (code, "implicit_true" in said) == (2, False)


def test_a_file_that_cannot_be_read_is_one_sentence(code_and_error: CodeAndError, tmp_path: Path) -> None:
    (tmp_path / "conversations.jsonl").write_text("")
    (tmp_path / "experiment.json").mkdir()
    code, said = code_and_error("detect", tmp_path)
    told = f"error: {tmp_path / 'experiment.json'}: this is no file. Restore it or use --fresh.\n"
    assert (code, said) == (2, told)
