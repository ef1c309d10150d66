from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.datasets.audit_corpus import generate, read_sentence_meta
from hallulab.scenarios.datasets.audit_corpus.responses import schedule_hallucinations, write_response
from hallulab.scenarios.datasets.audit_corpus.sources import (
    Blueprint,
    Fact,
    Source,
    fill,
    list_slots,
    make_sources,
    read_blueprints,
    read_plan,
    read_pools,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import GoldSpan, LabelledData, LabelledReply
from hallulab.scenarios.transcript import Passage


@pytest.fixture(scope="module")
def corpus() -> LabelledData:
    return generate()


def words(reply: LabelledReply) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", reply.reply)]


def hallucinated_words(reply: LabelledReply) -> int:
    assert reply.spans is not None
    return sum(any(a < span.end and span.start < b for span in reply.spans) for a, b in words(reply))


def count(corpus: LabelledData, key: str, *, only_hallucinated: bool = False) -> dict[object, int]:
    return dict(Counter(reply.meta[key] for reply in corpus if reply.label or not only_hallucinated))


def test_sources_and_replies_are_as_many_as_in_table_3(corpus: LabelledData) -> None:
    sources = Counter({reply.group: reply.meta["source"] for reply in corpus}.values())
    assert dict(sources) == {"Yelp": 50, "MARCO": 45, "CNN/DM": 30, "Recent News": 15}
    assert count(corpus, "source") == {"Yelp": 300, "MARCO": 270, "CNN/DM": 180, "Recent News": 90}
    hallucinated = count(corpus, "source", only_hallucinated=True)
    assert hallucinated == {"Yelp": 195, "MARCO": 63, "CNN/DM": 51, "Recent News": 25}


def test_hallucinated_replies_by_generator_are_as_in_table_4(corpus: LabelledData) -> None:
    assert count(corpus, "model", only_hallucinated=True) == {
        "gpt-3.5-turbo-0613": 21,
        "gpt-4-0613": 16,
        "llama-2-13B-chat": 69,
        "llama-2-70B-chat": 64,
        "llama-2-7B-chat": 90,
        "mistral-7B-instruct": 74,
    }
    assert set(count(corpus, "model").values()) == {140}


def test_each_generator_has_the_mean_temperature_of_table_4(corpus: LabelledData) -> None:
    sums: Counter[object] = Counter()
    for reply in corpus:
        sums[reply.meta["model"]] += round(1000 * float(reply.meta["temperature"] or 0))
    assert {total / 140 for total in sums.values()} == {850}


def test_splits_are_as_in_table_1(corpus: LabelledData) -> None:
    sentences: Counter[object] = Counter()
    for reply in corpus:
        sentences[reply.meta["split"]] += len(read_sentence_meta(reply))
    assert count(corpus, "split") == {"train": 468, "calibration": 120, "test": 252}
    assert sentences == {"train": 1230, "calibration": 330, "test": 690}


def test_a_source_is_in_one_split(corpus: LabelledData) -> None:
    assert len({(reply.group, reply.meta["split"]) for reply in corpus}) == 140


def test_words_are_about_as_many_as_in_table_1(corpus: LabelledData) -> None:
    every: Counter[object] = Counter()
    hallucinated: Counter[object] = Counter()
    for reply in corpus:
        every[reply.meta["split"]] += len(words(reply))
        hallucinated[reply.meta["split"]] += hallucinated_words(reply)
    paper = {"train": (12722, 439), "calibration": (3598, 115), "test": (6964, 286)}
    for split, (total, positive) in paper.items():
        assert every[split] == pytest.approx(total, rel=0.03)
        assert hallucinated[split] == pytest.approx(positive, rel=0.05)


def test_supported_test_sentences_are_as_many_as_in_table_9(corpus: LabelledData) -> None:
    test = [sentence for r in corpus if r.meta["split"] == "test" for sentence in read_sentence_meta(r)]
    assert sum(sentence.evidence is not None for sentence in test) == 552


def test_a_sentence_has_evidence_just_where_it_has_no_span(corpus: LabelledData) -> None:
    for reply in corpus:
        for start, end, evidence in read_sentence_meta(reply):
            within = [span for span in reply.spans or () if start <= span.start and span.end <= end]
            assert (evidence is None) == bool(within)
            assert evidence is None or 0 <= evidence < len(reply.passages)


def test_sentences_cover_the_reply(corpus: LabelledData) -> None:
    for reply in corpus:
        parts = [reply.reply[start:end] for start, end, _ in read_sentence_meta(reply)]
        assert " ".join(parts) == reply.reply
        assert all(part.endswith(".") for part in parts)


def test_few_replacements_stand_elsewhere_in_the_source(corpus: LabelledData) -> None:
    places = [
        any(
            re.search(rf"\b{re.escape(reply.reply[span.start : span.end])}\b", passage.text)
            for passage in reply.passages
        )
        for reply in corpus
        for span in reply.spans or ()
    ]
    assert 0 < sum(places) < 0.04 * len(places)


def test_the_corpus_is_the_same_every_time(corpus: LabelledData) -> None:
    again = generate()
    assert [reply.model_dump_json() for reply in again] == [reply.model_dump_json() for reply in corpus]


def test_the_corpus_is_the_published_one(corpus: LabelledData) -> None:
    # Whoever changes it on purpose measures all detectors again and writes the new digest here.
    lines = [reply.model_dump_json(exclude={"ratings", "turns"}) for reply in corpus]
    assert digest(lines) == "7759d8f76027eaf2aaa557ec00b89f8d"


def test_another_seed_gives_another_corpus_with_the_same_numbers(corpus: LabelledData) -> None:
    other = generate(seed=18)
    assert [reply.reply for reply in other] != [reply.reply for reply in corpus]
    assert count(other, "model", only_hallucinated=True) == count(corpus, "model", only_hallucinated=True)


def test_ids_are_unique(corpus: LabelledData) -> None:
    assert len({reply.id for reply in corpus}) == 840


@pytest.mark.parametrize("file", [collection.file for collection in read_plan().collections.values()])
def test_blueprints_are_sound(file: str) -> None:
    for blueprint in read_blueprints(file):
        assert set(blueprint.slots.values()) <= set(read_pools())
        for fact in blueprint.facts:
            for text in fact.texts:
                assert set(list_slots(text)) <= set(blueprint.slots)
                assert set(list_slots(text)) & set(fact.replace), text
            assert set(fact.also) <= set(blueprint.slots)


def test_a_template_is_filled_and_knows_its_places() -> None:
    filled = fill("{who/1} left {town}, {who/1}!", {"who": ("Ann Lee", "Lee"), "town": ("Reno",)})
    assert filled == ("Lee left Reno, Lee!", {"who": [(0, 3), (15, 18)], "town": [(9, 13)]})


def test_a_missing_form_is_the_last_one_and_a_sentence_begins_with_a_capital() -> None:
    assert fill("{what/1} is cheap", {"what": ("ice",)}).text == "Ice is cheap"


def source(**values: tuple[str, ...]) -> Source:
    facts = (
        Fact(evidence="1", replace=("day",), texts=("It is closed on {day}.",)),
        Fact(evidence="0", replace=("city",), texts=("It is in {city}.",)),
    )
    slots = {"day": "day", "city": "city", "city2": "city"}
    return Source(
        id="s",
        collection="MARCO",
        split="test",
        blueprint=Blueprint(slots=slots, question="", facts=facts),
        values=values,
        question="",
        passages=(
            Passage(id="s#0", document="s", text="It stands in Reno, not in Salem."),
            Passage(id="s#1", document="s", text="It is closed on Monday."),
        ),
    )


VALUES = {"day": ("Monday", "Mon"), "city": ("Reno",), "city2": ("Salem",)}


def test_a_supported_response_names_its_evidence() -> None:
    response = write_response(source(**VALUES), 2, 0, 0.0, random.Random(1))
    assert response == ("It is closed on Monday. It is in Reno.", (), ((0, 23, 1), (24, 38, 0)))


def test_a_replacement_is_marked_exactly_and_is_not_in_the_source() -> None:
    for seed in range(20):
        response = write_response(source(**VALUES), 2, 2, 0.0, random.Random(seed))
        day, city = (response.text[span.start : span.end] for span in response.spans)
        assert response.text == f"It is closed on {day}. It is in {city}."
        assert day not in ("Monday", "Mon")
        assert city not in ("Reno", "Salem")
        assert [span.label for span in response.spans] == ["day", "city"]
        assert [sentence[2] for sentence in response.sentences] == [None, None]


def test_a_replacement_can_stand_elsewhere_in_the_source() -> None:
    response = write_response(source(**VALUES), 2, 2, 1.0, random.Random(1))
    assert response.text.endswith(" It is in Salem.")
    assert response.spans[1] == GoldSpan(
        start=len(response.text) - 6, end=len(response.text) - 1, label="city"
    )


def test_a_value_that_makes_the_sentence_true_as_well_replaces_nothing() -> None:
    plain = source(**VALUES)
    fact = plain.blueprint.facts[1].model_copy(update={"also": ("city2",)})
    blueprint = plain.blueprint.model_copy(update={"facts": (fact,)})
    for seed in range(20):
        response = write_response(replace(plain, blueprint=blueprint), 1, 1, 1.0, random.Random(seed))
        assert response.text.removeprefix("It is in ").removesuffix(".") not in ("Reno", "Salem")


@pytest.mark.parametrize("seed", range(8))
def test_no_hallucinated_amenity_is_one_that_the_source_offers(seed: int) -> None:
    forms = {form: value[0] for value in read_pools()["amenity"].all_forms() for form in value}
    for reply in generate(seed):
        for span in reply.spans or ():
            said = forms.get(reply.reply[span.start : span.end])
            assert said is None or all(f"{said}: yes" not in passage.text for passage in reply.passages)


def test_numbers_that_exclude_each_other_are_refused() -> None:
    plan = read_plan()
    impossible = plan.model_copy(update={"hallucinated_sentences": {"test": 1}})
    rng = random.Random(1)
    with pytest.raises(ValueError, match="1 hallucinated sentences cannot be had from 42 sources"):
        schedule_hallucinations(impossible, make_sources(plan, rng), rng)


def test_the_data_set_needs_no_folder(corpus: LabelledData) -> None:
    assert load_labelled("audit-corpus").replies == corpus.replies


def test_a_part_of_the_data_set_is_a_split() -> None:
    assert len(load_labelled("audit-corpus", source="calibration")) == 120


def test_a_folder_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--data x: audit-corpus is generated"):
        load_labelled("audit-corpus", Path("x"))
