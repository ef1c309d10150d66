"""What each worker makes of its peer's model: on tiny random models, and on literal tokens and labels."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hallulab.detectors.peers.process import Judged, read_message
from hallulab.detectors.peers.workers import (
    hhem_worker,
    lettucedetect_worker,
    minicheck_worker,
    refchecker_worker,
)
from tests.detectors.peers.tiny_models import save_tokenizer, tiny_hhem, tiny_minicheck, tiny_t5

REPLY = "The pool opens at 7. Tickets are free."
REQUEST: dict[str, Any] = {
    "id": "1",
    "question": "Is it free?",
    "passages": [
        {"text": "The pool opens at 6.", "sentences": [[0, 20]]},
        {"text": "Tickets are free.", "sentences": [[0, 17]]},
    ],
    "reply": {"text": REPLY, "sentences": [[0, 20], [21, 38]]},
}


def nobody(prompts: Sequence[Any]) -> list[str]:
    raise AssertionError("no model is asked")


def valid(answer: dict[str, Any]) -> Judged:
    """The answer as our process reads it."""
    said = read_message(json.dumps({**answer, "id": "1"}).encode())
    assert isinstance(said, Judged)
    return said


class TestHhem:
    @staticmethod
    def inconsistency(model: Any, tokenizer: Any, hypothesis: str) -> float:
        """As the model card computes it."""
        import torch

        text = (
            "<pad> Determine if the hypothesis is true given the premise?\n\n"
            f"Premise: The pool opens at 6.\nTickets are free.\n\nHypothesis: {hypothesis}"
        )
        logits = model(**tokenizer([text], return_tensors="pt")).logits[:, 0, :]
        return 1.0 - float(torch.softmax(logits.detach(), dim=-1)[0, 1])

    def test_the_first_position_is_read_and_the_published_names_fit(self, tmp_path: Path) -> None:
        from transformers import AutoTokenizer

        model = tiny_hhem(tmp_path / "hhem", tmp_path / "t5")
        tokenizer = AutoTokenizer.from_pretrained(tmp_path / "t5")
        configuration = {"weights": str(tmp_path / "hhem"), "foundation": None, "threshold": 0.5}
        peer = hhem_worker.Worker({**configuration, "sentences": True}, nobody)
        said = valid(peer.answer(REQUEST))
        wanted = [self.inconsistency(model, tokenizer, text) for text in (REPLY, REPLY[:20], REPLY[21:])]
        assert [said.score, *(unit.score for unit in said.units)] == pytest.approx(wanted, abs=1e-5)
        assert len({round(score, 6) for score in wanted}) == 3
        assert [(unit.start, unit.end) for unit in said.units] == [(0, 20), (21, 38)]
        assert said.spans is not None
        assert len(said.spans) == sum(unit.score >= 0.5 for unit in said.units)

    def test_without_sentences_it_does_not_say_where(self, tmp_path: Path) -> None:
        tiny_hhem(tmp_path / "hhem", tmp_path / "t5")
        configuration = {"weights": str(tmp_path / "hhem"), "threshold": 0.5, "sentences": False}
        peer = hhem_worker.Worker({**configuration, "foundation": str(tmp_path / "t5")}, nobody)
        said = valid(peer.answer(REQUEST))
        assert (said.spans, said.units) == (None, ())

    def test_weights_of_another_shape_are_refused(self, tmp_path: Path) -> None:
        from safetensors.torch import load_file, save_file

        tiny_hhem(tmp_path / "hhem", tmp_path / "t5")
        state = load_file(tmp_path / "hhem" / "model.safetensors")
        del state["t5.classifier.weight"]
        save_file(state, tmp_path / "hhem" / "model.safetensors")
        configuration = {"weights": str(tmp_path / "hhem"), "foundation": None, "threshold": 0.5}
        with pytest.raises(ValueError, match=r"do not fit the foundation \(classifier\.weight\)"):
            hhem_worker.Worker({**configuration, "sentences": False}, nobody)


class TestMiniCheck:
    @staticmethod
    def peer(folder: Path) -> minicheck_worker.Worker:
        return minicheck_worker.Worker(
            {"weights": str(folder), "threshold": 0.5, "peer": "minicheck"}, nobody
        )

    def test_the_t5_model_is_read_at_its_first_token(self, tmp_path: Path) -> None:
        import torch
        from transformers import AutoTokenizer

        model = tiny_minicheck(tmp_path, "t5")
        tokenizer = AutoTokenizer.from_pretrained(tmp_path)

        def support(chunk: str, sentence: str) -> float:
            inputs = tokenizer(f"predict: {chunk}</s>{sentence}", return_tensors="pt")
            logits = model(**inputs, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits
            return float(torch.softmax(logits.detach()[0, 0, [3, 209]], dim=-1)[1])

        said = valid(self.peer(tmp_path).answer(REQUEST))
        chunks = [passage["text"] for passage in REQUEST["passages"]]
        wanted = [1 - max(support(chunk, text) for chunk in chunks) for text in (REPLY[:20], REPLY[21:])]
        assert [unit.score for unit in said.units] == pytest.approx(wanted, abs=1e-5)
        assert said.score == max(unit.score for unit in said.units)
        assert said.truncated is False

    def test_the_others_are_classifiers(self, tmp_path: Path) -> None:
        import torch
        from transformers import AutoTokenizer

        model = tiny_minicheck(tmp_path, "roberta")
        tokenizer = AutoTokenizer.from_pretrained(tmp_path)
        one = {**REQUEST, "passages": REQUEST["passages"][:1]}
        said = valid(self.peer(tmp_path).answer(one))
        inputs = tokenizer(f"The pool opens at 6.</s>{REPLY[:20]}", return_tensors="pt")
        supported = torch.softmax(model(inputs.input_ids, inputs.attention_mask).logits, dim=-1)[0, 1]
        assert said.units[0].score == pytest.approx(1 - float(supported.detach()), abs=1e-5)

    def test_what_does_not_fit_is_truncated(self, tmp_path: Path) -> None:
        tiny_minicheck(tmp_path, "roberta")
        text = "the pool " * 600
        long = {**REQUEST, "passages": [{"text": text, "sentences": [[0, len(text) - 1]]}]}
        assert valid(self.peer(tmp_path).answer(long)).truncated is True

    def test_chunks_are_runs_of_whole_sentences(self) -> None:
        text = "aa bb. cc. dd ee ff gg. hh."
        sentences = [[0, 6], [7, 10], [11, 23], [24, 27]]
        chunks = minicheck_worker.split_chunks(text, sentences, 3, lambda part: len(part.split()))
        assert list(chunks) == ["aa bb. cc.", "dd ee ff gg.", "hh."]

    def test_without_sentences_it_abstains(self, tmp_path: Path) -> None:
        tiny_minicheck(tmp_path, "t5")
        assert "abstained" in self.peer(tmp_path).answer({**REQUEST, "passages": []})


class TestFactCg:
    def test_chunk_and_sentence_stand_in_its_form(self, tmp_path: Path) -> None:
        import torch
        from transformers import AutoTokenizer

        model = tiny_minicheck(tmp_path, "deberta")
        tokenizer = AutoTokenizer.from_pretrained(tmp_path)
        configuration = {"weights": str(tmp_path), "threshold": 0.5, "peer": "factcg"}
        said = valid(minicheck_worker.Worker(configuration, nobody).answer(REQUEST))

        def support(chunk: str, sentence: str) -> float:
            text = (
                f"{chunk}\n\nChoose your answer: based on the paragraph above can we conclude that "
                f'"{sentence}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
            )
            inputs = tokenizer(text, return_tensors="pt")
            logits = model(inputs.input_ids, inputs.attention_mask).logits
            return float(torch.softmax(logits.detach(), dim=-1)[0, 1])

        chunks = [passage["text"] for passage in REQUEST["passages"]]
        wanted = [1 - max(support(chunk, text) for chunk in chunks) for text in (REPLY[:20], REPLY[21:])]
        assert [unit.score for unit in said.units] == pytest.approx(wanted, abs=1e-5)
        assert said.score == max(unit.score for unit in said.units)

    def test_braces_of_a_reply_are_text(self, tmp_path: Path) -> None:
        tiny_minicheck(tmp_path, "deberta")
        configuration = {"weights": str(tmp_path), "threshold": 0.5, "peer": "factcg"}
        braces = {"text": "{chunk} {0} is free.", "sentences": [[0, 20]]}
        peer = minicheck_worker.Worker(configuration, nobody)
        assert len(valid(peer.answer({**REQUEST, "reply": braces})).units) == 1


class TestLettuceDetect:
    def test_words_and_spans_of_tokens(self) -> None:
        reply = "It opens  at 7 pm."
        tokens = [(0, 2, 0.1), (2, 8, 0.9), (8, 12, 0.6), (12, 14, 0.2), (14, 17, 0.2), (17, 18, 0.7)]
        units = lettucedetect_worker.make_word_units(reply, tokens)
        assert [(reply[u["start"] : u["end"]], u["score"]) for u in units] == [
            ("It", 0.1),
            ("opens", 0.9),
            ("at", 0.6),
            ("7", 0.2),
            ("pm.", 0.7),
        ]
        spans = lettucedetect_worker.find_spans(reply, tokens, 0.5)
        assert [(reply[s["start"] : s["end"]], s["score"]) for s in spans] == [("opens  at", 0.9), (".", 0.7)]

    def test_the_packages_probabilities_meet_the_tokens_of_the_reply(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The package is in its own environment only; its list ends with the separator."""
        from transformers import AutoTokenizer

        tiny_t5(tmp_path)
        save_tokenizer(tmp_path, pair=True)
        asked: list[Any] = []

        class HallucinationDetector:
            def __init__(self, method: str, model_path: str) -> None:
                tokenizer = AutoTokenizer.from_pretrained(model_path)
                self.detector = SimpleNamespace(tokenizer=tokenizer, max_length=120, predict=self.predict)

            def predict(self, context: list[str], answer: str, question: str | None, **how: str) -> Any:
                asked.append((context, answer, question, how))
                return [
                    {"prob": share / 10, "pred": 0, "token": ""}
                    for share in (0, 1, 2, 3, 8, 5, 0, 0, 6, 7, 9)
                ]

        monkeypatch.setitem(
            sys.modules,
            "lettucedetect.models.inference",
            _module(HallucinationDetector=HallucinationDetector),
        )
        peer = lettucedetect_worker.Worker({"weights": str(tmp_path), "threshold": 0.5}, nobody)
        said = valid(peer.answer(REQUEST))
        assert asked == [
            (["The pool opens at 6.", "Tickets are free."], REPLY, "Is it free?", {"output_format": "tokens"})
        ]
        assert said.score == 0.8
        assert said.spans is not None
        assert [REPLY[span.start : span.end] for span in said.spans] == ["7.", "free."]
        assert [unit.score for unit in said.units] == [0.0, 0.1, 0.2, 0.3, 0.8, 0.0, 0.0, 0.7]
        assert said.truncated is False
        long = {**REQUEST, "passages": [{"text": "pool " * 50, "sentences": []}]}
        assert valid(peer.answer(long)).truncated is True


class TestRefChecker:
    PATTERN = r'\(".*", ".*", ".*"\)'

    def test_a_models_triplets_are_never_evaluated(self, tmp_path: Path) -> None:
        proof = tmp_path / "evaluated"
        evil = f'("a", "b", "c" + str(open("{proof}", "w")) + "")'
        text = f'("Pool", "opens at", "6")\n{evil}\n("two", "", "three")'
        found = refchecker_worker.read_triplets(self.PATTERN, text)
        assert found[0] == ["Pool", "opens at", "6"]
        assert not proof.exists()

    def test_a_set_of_lists_is_no_triplet(self) -> None:
        assert refchecker_worker.read_triplets(self.PATTERN, '("a", "b", {["x"]}, "", "c")') == []

    def test_what_is_not_entailed_is_flagged(self) -> None:
        claims = [["pool", "opens", "6"], ["pool", "opens", "7"], ["tickets", "cost", "2"]]
        labels = ["Entailment", "Contradiction", "Neutral"]
        said = valid(refchecker_worker.make_verdict(claims, labels, truncated=False))
        assert said.score == pytest.approx(2 / 3)
        assert [unit.details["label"] for unit in said.units] == labels
        assert said.spans is not None
        assert [(span.start, span.text) for span in said.spans] == [
            (None, "pool | opens | 7"),
            (None, "tickets | cost | 2"),
        ]

    def test_labels_must_be_one_for_each_triplet(self) -> None:
        with pytest.raises(ValueError, match="1 labels for 2 triplets"):
            refchecker_worker.make_verdict([["a", "b", "c"]] * 2, ["Neutral"], truncated=False)

    def test_the_package_asks_the_served_model_through_us(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class LLMExtractor:
            def __init__(self, **options: str) -> None:
                pass

            def _parse_triplets(self, pattern: str, text: str) -> Any:
                raise AssertionError("the package's own parser evaluates")

            def extract(self, batch_responses: Any, batch_questions: Any, custom_llm_api_func: Any) -> Any:
                [said] = custom_llm_api_func([f"triplets of {batch_responses[0]}"])
                found = self._parse_triplets(TestRefChecker.PATTERN, said)
                return [SimpleNamespace(claims=[SimpleNamespace(content=claim) for claim in found])]

        class LLMChecker:
            def __init__(self, **options: str) -> None:
                pass

            def check(self, batch_claims: Any, custom_llm_api_func: Any, **how: Any) -> Any:
                return [custom_llm_api_func([str(claim) for claim in batch_claims[0]])]

        package = _module(LLMExtractor=LLMExtractor, LLMChecker=LLMChecker)
        monkeypatch.setitem(sys.modules, "refchecker", package)
        asked: list[Any] = []

        def ask(prompts: list[dict[str, Any]]) -> list[str]:
            asked.extend((each["step"], each["max_tokens"]) for each in prompts)
            return ['("pool", "opens", "7")'] if prompts[0]["step"] == "extract" else ["Contradiction"]

        said = valid(refchecker_worker.Worker({"weights": None}, ask).answer(REQUEST))
        assert said.score == 1.0
        assert asked == [("extract", 500), ("check", 10)]

        def says_nothing(prompts: list[dict[str, Any]]) -> list[str]:
            return ["There are none."]

        assert refchecker_worker.Worker({"weights": None}, says_nothing).answer(REQUEST) == {
            "abstained": "no triplet was found in the reply"
        }

        def checks_nothing(prompts: list[dict[str, Any]]) -> list[str]:
            return ['("pool", "opens", "7")'] if prompts[0]["step"] == "extract" else ["\n"]

        with pytest.raises(ValueError, match="the served model's answer is empty where it was to check"):
            refchecker_worker.Worker({"weights": None}, checks_nothing).answer(REQUEST)

    @pytest.mark.parametrize(
        "labels",
        [
            {0: "contradiction", 1: "entailment", 2: "neutral"},
            {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"},
            {0: "entailment", 1: "not_entailment"},
        ],
    )
    def test_an_nli_model_with_labels_in_another_order_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, labels: dict[int, str]
    ) -> None:
        nli_stand_in(monkeypatch, labels)
        theirs = f"the NLI model's labels are {', '.join(labels.values())}; "
        with pytest.raises(
            ValueError, match=f"^{theirs}RefChecker reads them as Entailment, Neutral, Contradiction$"
        ):
            refchecker_worker.Worker({"weights": "own/nli"}, nobody)

    def test_an_nli_model_with_the_packages_labels_is_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        nli_stand_in(monkeypatch, {2: "CONTRADICTION", 0: "entailment", 1: "Neutral"})
        refchecker_worker.Worker({"weights": "own/nli"}, nobody)


def nli_stand_in(monkeypatch: pytest.MonkeyPatch, labels: dict[int, str]) -> None:
    """The package with a checker whose model has these labels by class."""

    class NLIChecker:
        def __init__(self, model: str, device: str) -> None:
            self.model = SimpleNamespace(config=SimpleNamespace(id2label=labels))

    class LLMExtractor:
        def __init__(self, **options: str) -> None:
            pass

    monkeypatch.setitem(sys.modules, "refchecker", _module(LLMExtractor=LLMExtractor, LLMChecker=None))
    monkeypatch.setitem(sys.modules, "refchecker.checker", _module(NLIChecker=NLIChecker))
    order = ["Entailment", "Neutral", "Contradiction"]
    monkeypatch.setitem(sys.modules, "refchecker.checker.nli_checker", _module(LABELS=order))


def _module(**members: Any) -> ModuleType:
    module = ModuleType("stand-in")
    for name, member in members.items():
        setattr(module, name, member)
    return module
