"""Functions of `hallulab` given something else: it is taken, or refused in a sentence before all else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest

import hallulab
from hallulab import Detector, Judgement, LabelledReply, Passage, TurnView, UsageError
from hallulab.detectors.base.protocol import run_detector
from hallulab.scenarios.arguments import check_arguments
from hallulab.simulator.engine.participants import make_detectors
from hallulab.simulator.engine.replies import read_views
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.testing.endpoint import serve_stub
from hallulab.testing.scripted import ScriptedModel, scripted_pool
from hallulab.testing.tiny_pack import make_pack

GIVEN = {"question": "The fee?", "passages": ["The fee is Rs 200."], "reply": "It is Rs 500."}
VIEW = TurnView(
    question="The fee?",
    passages=(Passage(id="passage#0", document="passage", text="The fee is Rs 200."),),
    reply="It is Rs 500.",
)
LABELLED = LabelledReply(
    id="a", dataset="d", task="qa", group="g", label=True, **VIEW.model_dump(include={*GIVEN, "passages"})
)


def yield_one() -> Iterator[dict[str, Any]]:
    yield GIVEN


@pytest.mark.parametrize(
    "views",
    [
        [GIVEN],
        (GIVEN,),
        yield_one(),
        [{"user": "The fee?", "context": "The fee is Rs 200.", "answer": "It is Rs 500."}],
        [{**GIVEN, "passages": VIEW.passages}],
        [{**GIVEN, "passages": [{"text": "The fee is Rs 200."}], "history": None}],
        [pandas.Series({**GIVEN, "history": float("nan")})],
        pandas.DataFrame([GIVEN]).to_dict("records"),
        [LABELLED],
        [VIEW],
    ],
    ids=["dict", "tuple", "generator", "synonyms", "types", "null", "row", "records", "labelled", "view"],
)
def test_replies_are_taken_as_people_have_them(views: Any) -> None:
    assert read_views(views) == (VIEW,)


def test_a_message_of_the_history_has_a_text_or_a_content() -> None:
    said = [{"role": "user", "content": "Hi."}, {"role": "assistant", "text": "Hello."}]
    [view] = read_views([{**GIVEN, "history": said}])
    assert [(one.role, one.text) for one in view.history] == [("user", "Hi."), ("assistant", "Hello.")]


def test_judge_takes_a_mapping() -> None:
    [judgement] = hallulab.judge_replies([GIVEN], "lexical")
    assert judgement.flagged is True


def test_no_reply_gives_no_judgement() -> None:
    assert hallulab.judge_replies([], "lexical") == []


@pytest.mark.parametrize(
    ("views", "said"),
    [
        ([GIVEN, {"question": "The fee?"}], "item 1 of `views`: `passages` is missing. Give a TurnView"),
        ([{**GIVEN, "passage": "x"}], "item 0 of `views`: `passage` is none of a reply. Give "),
        ([{**GIVEN, "reply": 5}], "item 0 of `views`: `reply` is wrong: input should be a valid str"),
        ([{**GIVEN, "passages": [5]}], "item 0 of `views`: `passages.0"),
        ([{**GIVEN, "passages": 5}], "item 0 of `views`: `passages` is wrong: must be a list, not "),
        ([{**GIVEN, "history": ["Hi."]}], "item 0 of `views`: `history.0` is wrong: must be keys "),
        ([VIEW.model_copy(update={"passages": ["x"]})], "item 0 of `views`: `passages.0` is wrong: "),
        ([None], "item 0 of `views` is None. Give a TurnView, or a mapping with "),
        (["text"], "item 0 of `views` is a str. Give "),
        (GIVEN, "`views` is a dict, and no list of replies. Give "),
        (VIEW, "`views` is a TurnView, and no list of replies. Give "),
        ("text", "`views` is a str, and no list of replies. Give "),
        (None, "`views` is None"),
        (7, "`views` is 7"),
        (pandas.DataFrame([GIVEN]), "`views` is a table. Give `table.to_dict('records')`."),
    ],
)
def test_what_is_no_reply_is_refused_with_its_number_and_field(views: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        hallulab.judge_replies(views, "metarag", base_url="http://127.0.0.1:9/v1", model="m")
    assert str(caught.value).startswith(f"judge_replies: {said}")
    assert "\n" not in str(caught.value)


WRONG = (
    {"a": 1},
    pandas.Series({"a": 1}),
    pandas.DataFrame([{"a": 1}]),
    [],
    [object()],
    yield_one(),
    None,
    object(),
    b"x",
    float("nan"),
)
PATHS: tuple[tuple[Callable[..., Any], dict[str, Any]], ...] = (
    (hallulab.detect, {"folder": ...}),
    (hallulab.bench, {"dataset": ...}),
    (hallulab.plant, {"source": ..., "out": "out"}),
    (hallulab.plant, {"source": "source", "out": ...}),
    (hallulab.import_chats, {"file": ...}),
    (hallulab.export_chats, {"run": ..., "format": "csv", "out": "out"}),
    (hallulab.export_chats, {"run": "run", "format": ..., "out": "out"}),
    (hallulab.export_chats, {"run": "run", "format": "csv", "out": ...}),
    (hallulab.load_run, {"path": ...}),
    (hallulab.Run, {"path": ...}),
    (hallulab.read_report, {"path": ...}),
    (hallulab.load_scenario, {"name_or_path": ...}),
    (hallulab.assert_no_regression, {"run": ..., "against": "baseline"}),
    (hallulab.assert_no_regression, {"run": "run", "against": ...}),
)


@pytest.mark.parametrize(("function", "arguments"), PATHS)
def test_what_is_no_path_is_refused(
    function: Callable[..., Any], arguments: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [name] = (name for name, value in arguments.items() if value is ...)
    may_be_none = inspect.signature(function).parameters[name].default is None
    for value in WRONG:
        if value is None and may_be_none:
            continue
        with pytest.raises(UsageError) as caught:
            function(**{**arguments, name: value})
        said = str(caught.value)
        assert said.startswith(f"{function.__name__}: `{name}` ")
        assert "\n" not in said
    assert list(tmp_path.iterdir()) == []


def list_options() -> list[tuple[Callable[..., Any], str]]:
    """The options of the verbs that take neither an object nor a list."""
    verbs = (hallulab.simulate, hallulab.run, hallulab.detect, hallulab.judge, hallulab.judge_replies,
             hallulab.bench, hallulab.plant, hallulab.calibrate, hallulab.import_chats)  # fmt: skip
    return [
        (verb, name)
        for verb in verbs
        for name in inspect.signature(verb).parameters
        if name
        in ("out", "fresh", "record", "replay", "quiet", "workers", "batch", "seed", "limit", "format")
    ]


@pytest.mark.parametrize(("verb", "option"), list_options())
def test_an_option_of_another_type_is_refused(verb: Callable[..., Any], option: str) -> None:
    needed = {
        name: "nowhere"
        for name, one in inspect.signature(verb).parameters.items()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    }
    for value in ({"a": 1}, pandas.Series({"a": 1}), [object()], object()):
        with pytest.raises(UsageError) as caught:
            verb(**{**needed, option: value})
        assert str(caught.value).startswith(f"{verb.__name__}: `{option}` ")


@pytest.mark.parametrize(
    ("function", "option"), [(ScriptedModel, "script"), (serve_stub, "answer"), (make_pack, "folder")]
)
def test_the_kit_refuses_what_is_something_else(function: Callable[..., Any], option: str) -> None:
    for value in ({"a": 1}, "text", 7, [object()]):
        with pytest.raises(UsageError, match=rf"^{function.__name__}: `{option}` is "):
            function(value)


def test_another_word_than_those_there_are_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--batch waves: give vllm or api\.$"):
        hallulab.simulate({"limit": 1}, batch="waves", model="m")  # type: ignore[arg-type]


def test_a_missing_argument_names_the_function_and_not_our_classes() -> None:
    with pytest.raises(TypeError, match=r"^judge_replies: missing a required argument: 'detector'$"):
        hallulab.judge_replies([GIVEN])  # type: ignore[call-arg]


def test_a_part_that_no_export_has_is_refused(tmp_path: Path) -> None:
    (tmp_path / "conversations.jsonl").touch()
    with pytest.raises(UsageError, match=r"^--without span: unknown .*Give some of passages, steps, spans"):
        hallulab.export_chats(tmp_path, "csv", tmp_path / "out", without=["span"])


def test_numbers_of_numpy_and_other_paths_are_taken() -> None:
    import numpy as np

    @check_arguments
    def call(path: str | Path, times: int) -> tuple[object, object]:
        return path, times

    class Folder:
        def __fspath__(self) -> str:
            return "folder"

    folder = Folder()
    assert call(folder, np.int64(2)) == (folder, 2)  # type: ignore[arg-type]


async def test_a_bug_of_our_own_is_recorded_with_its_place() -> None:
    from hallulab.detectors.base import reading

    pool, _ = scripted_pool(lambda body: "No.")
    [made] = make_detectors(load_experiment(None, {"detectors": ["lexical"]}), pool, {})
    broken = VIEW.model_copy(update={"passages": [{"text": "The fee is Rs 200."}]})
    [judgement] = await run_detector(made, [broken])
    assert judgement.error is not None
    said, _, place = judgement.error.partition(" (in ")
    assert said == "AttributeError: 'dict' object has no attribute 'text'"
    assert place.startswith(f"{reading.__name__}, line ")


async def test_a_bug_of_somebody_elses_detector_is_told_as_they_tell_it() -> None:
    class Broken(Detector):
        name, version = "broken", "1"

        async def detect(self, view: TurnView) -> Judgement:
            raise AttributeError("no passages")

    [judgement] = await run_detector(Broken(), [VIEW])
    assert judgement.error == "AttributeError: no passages"
