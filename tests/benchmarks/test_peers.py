"""hallulab beside other simulators: a short form of the measurement, and its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers.__main__ import Measured, PeerTool, format_results, main, measure_rounds
from benchmarks.peers.environments import list_variables, name_version
from benchmarks.peers.stub import answer


def measured(cpu: float, calls: int = 10) -> Measured:
    return Measured(turns=3, calls=calls, seconds=2.0, cpu=cpu, megabytes=100.4)


def test_processor_time_is_compared_within_a_round() -> None:
    rounds = {
        "inspect": [measured(0.04), measured(0.09), measured(0.02)],
        "bare": [measured(0.01), measured(0.03), measured(0.01)],
    }
    assert format_results(rounds, {"inspect": (4, 9)}, conversations=2).splitlines()[2:] == [
        "| bare | 1.0 | 1.00 (1.00 to 1.00) | 5.0 | 5 | 100 | – |",
        "| inspect 0.3.285 | 4.0 | 3.00 (2.00 to 4.00) | 5.0 | 5 | 100 | 4 of 9 |",
    ]


def test_only_our_environment_sees_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert "PYTHONPATH" not in list_variables("mlflow")
    assert list_variables("bare")["PYTHONPATH"].split(":")[0] == str(Path(__file__).parents[2])
    assert name_version("mlflow") == "mlflow 3.17.2"


@pytest.mark.parametrize(
    ("asked", "begins"),
    [
        ({"model": "user", "messages": [{"content": "Hello"}]}, "Can you tell me how "),
        ({"model": "user", "messages": [{"content": "a `simulated_input`"}]}, '{"simulated_input": "Can you'),
        ({"model": "user", "messages": [{"content": "`rationale`"}]}, '{"rationale": "The goal is not'),
        ({"model": "user", "messages": [{"content": "Told?"}], "logprobs": True}, "Yes"),
    ],
)
def test_the_endpoint_answers_in_the_form_that_a_tool_wants(asked: dict[str, object], begins: str) -> None:
    assert answer(asked)["choices"][0]["message"]["content"].startswith(begins)


def test_the_bare_client_must_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tools", "mlflow"]) == 2
    assert capsys.readouterr().err.startswith("error: --tools: bare must be among them")


@pytest.mark.slow
def test_two_conversations_are_measured(tmp_path: Path) -> None:
    tools = [PeerTool(name, tmp_path, conversations=2) for name in ("bare", "hallulab, plug-in")]
    found = measure_rounds(tools, rounds=1)
    assert [one[0].turns for one in found.values()] == [6, 6]
    assert found["bare"][0].calls == 12
