"""The time of a function that reads text grows with the text, not with its square."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

from tests.growth.families import FAMILIES, MOST, measure_growth
from tests.growth.table import TABLE

FOLDERS = (
    "scenarios.text", "scenarios.chats", "detectors.features", "detectors.explanations",
    "simulator.statistics", "simulator.metrics",
)  # fmt: skip
MODULES = (
    "agents.models.complaints",
    "agents.models.pauses",
    "agents.models.token_watch",
    "agents.models.written_calls",
    "agents.users.leaked_plans",
    "scenarios.attacks.giving_in",
    "scenarios.attacks.repeated",
    "scenarios.packs.documents",
    "simulator.authoring.tau_knowledge.goals",
    "simulator.authoring.tau_knowledge.instructions",
    "simulator.authoring.tau_knowledge.personas",
    "simulator.authoring.tau_knowledge.third_person",
    "simulator.show.reply_text",
    "simulator.viewer.conversation_page",
)
TEXTS = re.compile(
    r"\b(?:str|Any|Path|Passage|Document|Conversation|Turn|TurnView|Span|Marked|Message|Batch|ReplyWithEvidence"
    r"|ComparedSentence|ChatMessageRecord|AnnotatedTurn|ShownPassage)\b"
)
"""Types of arguments that hold text."""
ELSEWHERE = {
    "names, numbers and words of ours": """
        name_language are_written_alike shorten_number
        capitalise choose_noun format_count join_names format_number format_with_interval cut_region
        explain_no_interval compute_detection_intervals find_failed_judgements format_reason
        compare compute_corrections split_batches build_points
        compare_side_by_side require_measured find_format build_rows find_place
        list_entries count_all_verdicts collect_places
        list_in list_objects get_object get_text convert_to_text recognize_object is_reply read_text
        is_span_row find_hidden says_role note_speakers require_unique is_part is_item is_header
        is_later_header list_names choose_columns
        require_object is_span is_langfuse is_mlflow match_any make_forest make_scaled_regression
        read_counts fold_name fold_names parse_mapping place_in is_known find_encoding any_of compile_any
    """,
    "called by `read` and `write` of the format, or by `read_chats`, which are in the table": """
        read write recognize read_objects write_lines encode_json build_csv_rows format_csv_line read_own
        build_own_line build_message_line collect_messages read_messages read_openai
        follow_branch skip_wrong read_langsmith_spans read_parts shorten_value read_said build_chat
        list_unread find_session flatten_request read_reply read_reply_beside read_items
        read_candidates read_log
        join_sessions branch_off
        build_openai_line read_sharegpt build_sharegpt_line build_ragtruth_lines build_chat_context
        read_about build_conversation build_own_conversation list_messages add_topic
        read_otel_spans read_langfuse_spans
        build_own_line build_message_line collect_messages read_messages read_openai
        build_openai_line read_sharegpt build_sharegpt_line build_ragtruth_lines build_otlp_line
        build_ragas_lines build_chat_context read_about build_conversation list_messages add_topic
        read_otel_spans read_langfuse_spans
        read_mlflow_spans read_content_of read_event extract_dialogue_part find_spans read_body fold_keys
        read_traces build_turns read_chat_message find_evidence
        read_json_values format_of build_attribute_tree read_rows find_kind open_chats find_separator
        holds_words check_row_order read_row_place read_cells require_words are_names
        check_step check_turns check_session is_reversed find_role find_other build_said
        count_words get_first unwrap_langchain count_overlap read_values read_table_values
    """,
    "called by `make_batch`, `measure` or `judge_blocks`, which are in the table": """
        compare_stems measure_extra_features measure_word_features compute_reply_scores make_terms
        match_by_bm25 collect_source_entities find_entity_mismatches find_denied_tokens sum_by_sentence
        compute_content_share find_worst_by_word find_best_match mark_held
    """,
    "called by `judge_citations`, which is in the table": "group_by_sentence",
    "as many samples of `compute_disorder`, which is in the table, as chance asks for": """
        compute_gamma compare_annotators
    """,
    "looks for words that were planted, each by one `in`": "find_encounters",
    "numbers of texts that other functions of the table have read": """
        correct describe_corrections compare_corrected compare_estimates compare_chatbots find_set_aside
        collect_calls compare_labels
        count_annotations collect_judged_turns collect_placed_turns compute_self_bleu summarize_reference
        read_accuracies read_documents read_folder copy_documents
    """,
}
"""Why functions are not in the table → their names."""
WORST = [
    ("find_items", "one digit"),
    ("find_items", "line feeds"),
    ("find_items", "list marks"),
    ("explain", "items"),
    ("explain", "list marks"),
    ("find_wrong", "items"),
    ("generate_condition_edits", "conditions"),
    ("find_citation", "sentences"),
    ("find_citation", "quotes"),
    ("show_turns", "sentences"),
    ("show_turns", "items"),
    ("drop_brackets", "spaces"),
    ("speak_about", "spaces"),
    ("blame", "sentences"),
    ("compute_disorder", "one letter"),
    ("name_parts", "spaces"),
    ("html.read", "spaces"),
]
"""Pairs whose time grew with the square, before."""


def list_public_functions() -> Iterator[Callable[..., Any]]:
    found = [
        f"hallulab.{folder}.{one.name}"
        for folder in FOLDERS
        for one in iter_modules(import_module(f"hallulab.{folder}").__path__)
    ]
    for name in [*found, *(f"hallulab.{module}" for module in MODULES)]:
        for key, value in vars(import_module(name)).items():
            if not key.startswith("_") and callable(value) and getattr(value, "__module__", "") == name:
                function = inspect.unwrap(value)
                if inspect.isfunction(function):
                    yield value


def name_function(function: Callable[..., Any]) -> str:
    """Name a function by its module and name; a format's reader is one with fixed arguments."""
    function = getattr(function, "func", function)
    return f"{function.__module__.removeprefix('hallulab.')}.{function.__name__}"


def reads_text(function: Callable[..., Any]) -> bool:
    given = inspect.signature(function).parameters.values()
    return any(TEXTS.search(str(one.annotation)) for one in given)


def test_every_public_function_that_reads_text_is_in_the_table_or_has_a_reason() -> None:
    named = {name for names in ELSEWHERE.values() for name in names.split()}
    missing = [
        f"{one.__module__}.{one.__name__}"
        for one in list_public_functions()
        if reads_text(one) and one not in TABLE and one.__name__ not in named
    ]
    assert missing == []


def test_no_function_has_a_reason_that_is_not_there() -> None:
    there = {one.__name__ for one in list_public_functions()}
    assert {name for names in ELSEWHERE.values() for name in names.split()} - there == set()


@pytest.mark.parametrize(("name", "family"), WORST)
def test_the_worst_ones_grow_with_the_text(name: str, family: str) -> None:
    [run] = [run for function, run in TABLE.items() if name_function(function).endswith(f".{name}")]
    assert measure_growth(run, family) < MOST


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("function", TABLE, ids=name_function)
def test_the_time_of_a_function_grows_with_the_text(function: Callable[..., Any], family: str) -> None:
    assert measure_growth(TABLE[function], family) < MOST
