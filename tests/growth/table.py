"""Every public function that reads text, and how it is called with a hostile one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hallulab.agents.models import complaints, pauses, token_watch, written_calls
from hallulab.agents.users import leaked_plans, user
from hallulab.detectors.base import reading
from hallulab.detectors.explanations import claim, evidence, explanation, findings, other_forms
from hallulab.detectors.features import batch, features, judgements, trained_detector
from hallulab.scenarios.attacks import giving_in, repeated
from hallulab.scenarios.attacks.attack import load_orders
from hallulab.scenarios.chats import cells, conventions, formats, otel, row_order, span_files, traces, turns
from hallulab.scenarios.chats import evidence as passages
from hallulab.scenarios.packs import markdown
from hallulab.scenarios.packs.goals import GoalLabel
from hallulab.scenarios.packs.kinds import (
    cell_lines,
    html,
    html_styles,
    mail,
    number_formats,
    pdf,
    pdf_lines,
    rtf,
    spaced_letters,
    table_text,
    word,
)
from hallulab.scenarios.text import (
    abbreviations,
    chunking,
    citations,
    courtesies,
    declining,
    edits,
    framing,
    items,
    lacking,
    languages,
    numbers,
    one_form,
    page_marks,
    refusals,
    scripts,
    spans,
    thoughts,
    wording,
    words,
)
from hallulab.scenarios.transcript import Span
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.authoring.tau_knowledge import instructions, third_person
from hallulab.simulator.authoring.tau_knowledge import personas as tau_personas
from hallulab.simulator.metrics import (
    annotations,
    blame,
    diversity,
    goal_replies,
    hallucinations,
    messages,
    obedience,
    support,
    tokens,
)
from hallulab.simulator.metrics import citations as cited
from hallulab.simulator.report import first_screen
from hallulab.simulator.report.scores import LaneScore
from hallulab.simulator.show import reply_text
from hallulab.simulator.statistics.agreement import compute_disorder
from hallulab.simulator.viewer import conversation_page as page
from tests.growth.makers import (
    BANK,
    DRAW,
    EVIDENCE,
    POISON,
    PRESSED,
    REPLACED,
    SENTENCE,
    Case,
    cite,
    flag,
    judge,
    judged,
    list_conflicts,
    make_batch,
    make_claim,
    make_customer,
    make_document,
    make_item,
    make_langfuse,
    make_mlflow,
    make_openinference,
    make_pdf,
    make_tool,
    make_view,
    make_word,
    mark_units,
    measure,
    pass_through,
    read_file,
    read_turn,
    run_all,
    talk,
)
from tests.scenarios.chats.test_tools import FILES

assert REPLACED is not None


TABLE: dict[Callable[..., Any], Case] = {
    complaints.read_complaint: lambda text: complaints.read_complaint({"error": [{"message": text}, text]}),
    complaints.put_in_one_line: lambda text: complaints.put_in_one_line(f"<html>{text}"),
    complaints.find_told_error: lambda text: complaints.find_told_error({"error": text, text: [text]}),
    complaints.is_out_of_quota: lambda text: complaints.is_out_of_quota(
        {"error": {"code": text, "msg": text}}
    ),
    complaints.read_delay: lambda text: complaints.read_delay(
        {"error": {"details": [{"retryDelay": text}], "message": text}}
    ),
    complaints.is_an_error: complaints.is_an_error,
    complaints.says_it_failed: lambda text: complaints.says_it_failed({"error": text, text: [text]}),
    complaints.find_busy_status: lambda text: complaints.find_busy_status({"error": {"code": text}}),
    pauses.read_seconds: pauses.read_seconds,
    pauses.read_pause: lambda text: pauses.read_pause({"retry-after": text, "retry-after-ms": text}),
    complaints.is_broken: lambda text: complaints.is_broken(200, {}, text),
    complaints.describe_no_completion: lambda text: complaints.describe_no_completion(200, {}, text),
    complaints.describe_redirect: lambda text: complaints.describe_redirect(302, f"http://a/{text}", text),
    token_watch.parse_counts: token_watch.parse_counts,
    thoughts.leave_out_thoughts: thoughts.leave_out_thoughts,
    written_calls.writes_call: written_calls.writes_call,
    wording.is_blank: wording.is_blank,
    leaked_plans.find_leaked_plan: leaked_plans.find_leaked_plan,
    user.clean: lambda text: user.clean(text, "Asha Rao", cut=True),
    instructions.read_instructions: instructions.read_instructions,
    instructions.split_sentences: instructions.split_sentences,
    instructions.drop_brackets: instructions.drop_brackets,
    tau_personas.make_persona: make_customer,
    third_person.choose_pronouns: lambda text: third_person.choose_pronouns(text, text),
    third_person.lower_shouted: third_person.lower_shouted,
    third_person.speak_about: lambda text: third_person.speak_about(text, third_person.SHE),
    third_person.report_speech: lambda text: third_person.report_speech(text, third_person.SHE),
    chunking.split_into_chunks: chunking.split_into_chunks,
    chunking.cut_into_passages: lambda text: chunking.cut_into_passages(make_document(text)),
    edits.is_distinct_name: edits.is_distinct_name,
    edits.is_after_the: lambda text: edits.is_after_the(text, make_item(text)),
    edits.find_whole_sentences: edits.find_whole_sentences,
    edits.collect_sentences: lambda text: edits.collect_sentences([make_document(text)]).names,
    edits.is_clean_edit: lambda text: edits.is_clean_edit(text, text),
    edits.generate_number_edits: lambda text: run_all(edits.generate_number_edits(text, DRAW)),
    edits.generate_date_edits: lambda text: run_all(edits.generate_date_edits(text, DRAW)),
    edits.generate_unit_edits: lambda text: run_all(edits.generate_unit_edits(text, DRAW)),
    edits.name_edits: lambda text: run_all(edits.name_edits(text, BANK, DRAW)),
    edits.generate_reference_edits: lambda text: run_all(edits.generate_reference_edits(text, DRAW)),
    edits.generate_condition_edits: lambda text: run_all(edits.generate_condition_edits(text)),
    edits.build_negation: edits.build_negation,
    edits.generate_general_edits: lambda text: run_all(edits.generate_general_edits(text)),
    items.find_items: items.find_items,
    items.name_parts: lambda text: items.name_parts(make_item(text)),
    items.build_stems_key: items.build_stems_key,
    abbreviations.is_abbreviation: lambda text: abbreviations.is_abbreviation(text, text, "de"),
    spans.split_sentences: spans.split_sentences,
    spans.split_spoken_sentences: spans.split_spoken_sentences,
    spans.strip: lambda text: spans.strip(text, spans.Region(0, len(text))),
    spans.locate: lambda text: (spans.locate(SENTENCE, text), spans.locate(text[:40], text, near=9)),
    spans.locate_mentions: lambda text: spans.locate_mentions([text[:9], text[5:19]], text),
    spans.normalize_text: spans.normalize_text,
    spans.split_words: spans.split_words,
    languages.identify_language: languages.identify_language,
    languages.list_likely_languages: languages.list_likely_languages,
    numbers.join_groups: lambda text: numbers.join_groups(text, "fr"),
    numbers.parse_number: numbers.parse_number,
    numbers.parse_han_number: numbers.parse_han_number,
    one_form.is_in_one_form: one_form.is_in_one_form,
    one_form.unify_text: one_form.unify_text,
    one_form.unify_form: lambda text: one_form.unify_form(one_form.OneForm(text)),
    one_form.leave_out: lambda text: one_form.leave_out(
        text, [(at, at + 1) for at in range(0, len(text), 9)]
    ),
    one_form.collect_spellings: lambda text: one_form.collect_spellings([text]),
    one_form.join_broken_words: one_form.join_broken_words,
    scripts.has_other_words: scripts.has_other_words,
    scripts.split_runs: lambda text: run_all(scripts.split_runs(text)),
    scripts.split_by_unicode: lambda text: run_all(scripts.split_by_unicode(text)),
    numbers.list_word_values: lambda text: (
        numbers.list_word_values(text, "de"),
        numbers.list_word_values(text, "zh"),
    ),
    reading.read_turn: read_turn,
    reading.identify_reply_language: lambda text: reading.identify_reply_language(make_view(text)),
    reading.list_other_languages: lambda text: reading.list_other_languages(make_view(text), str.isupper),
    citations.read_citations: lambda text: citations.read_citations(text, [(text,), ("fees.md", "Fees")]),
    citations.blank_regions: lambda text: citations.blank_regions(
        text, [(at, at + 1) for at in range(0, len(text), 9)]
    ),
    page_marks.blank_marks: page_marks.blank_marks,
    courtesies.claims_nothing: courtesies.claims_nothing,
    declining.is_declining: declining.is_declining,
    declining.find_declining: declining.find_declining,
    declining.classify_reply: declining.classify_reply,
    refusals.declines_in: lambda text: [refusals.declines_in(code, text) for code in refusals.REFUSALS],
    refusals.classify_in: lambda text: [refusals.classify_in(code, text) for code in refusals.REFUSALS],
    lacking.tells_lack: lacking.tells_lack,
    lacking.is_untold: lacking.is_untold,
    lacking.adds_nothing: lambda text: lacking.adds_nothing(lacking.HEARD, text),
    goal_replies.find_deed: lambda text: [
        goal_replies.find_deed(text, label)
        for label in (
            GoalLabel(expect="ask-back", because="depends", needs="a date"),
            GoalLabel(expect="decline", because="contradiction", documents=("a",), says=("your", "7 days")),
        )
    ],
    framing.find_unclaimed: framing.find_unclaimed,
    framing.find_lead_in: framing.find_lead_in,
    spans.compute_unknown_share: lambda text: spans.compute_unknown_share(text, {"fee"}),
    wording.clean_for_terminal: wording.clean_for_terminal,
    wording.render_one_line: wording.render_one_line,
    wording.shorten_line: wording.shorten_line,
    words.parse_whole_number: words.parse_whole_number,
    words.read_word: lambda text: [words.read_word(match[0]) for match in words.TOKEN.finditer(text)],
    words.is_courtesy: words.is_courtesy,
    batch.find_all: lambda text: batch.find_all(words.TOKEN, [text]),
    batch.tokenize: lambda text: batch.tokenize([text], batch.Lexicon()),
    batch.find_content_stems: lambda text: batch.find_content_stems(text, batch.Lexicon()),
    batch.make_batch: make_batch,
    batch.make_case: lambda text: batch.make_case(
        TurnView(question=text, passages=(cite(text),), reply=text)
    ),
    batch.read_task: lambda text: (batch.read_task("", [cite(text)]), batch.read_task(text, [])),
    features.measure: measure,
    judgements.judge_blocks: judge,
    trained_detector.count_forms: lambda text: trained_detector.count_forms(make_batch(text)),
    claim.read_said: claim.read_said,
    claim.read_claim: make_claim,
    claim.choose_main_words: lambda text: claim.choose_main_words(make_claim(text)),
    claim.find_unsaid: lambda text: claim.find_unsaid(
        make_claim(text), [spans.Region(3, 9), spans.Region(20, 22)]
    ),
    claim.list_unknown_words: lambda text: claim.list_unknown_words(
        make_claim(text), spans.Region(0, len(text)), frozenset({"fee"})
    ),
    claim.find_lacking: lambda text: claim.find_lacking(make_claim(text), frozenset({"fee"})),
    claim.widen_to_items: lambda text: claim.widen_to_items(make_claim(text), 3, len(text)),
    evidence.read_tokens: evidence.read_tokens,
    evidence.collect_content_stems: lambda text: evidence.collect_content_stems(evidence.read_tokens(text)),
    evidence.read_evidence: lambda text: evidence.read_evidence((text, f"Title: {text}", EVIDENCE)),
    explanation.word_reason: lambda text: explanation.word_reason(
        make_claim(text), findings.find_wrong(make_claim(text))
    ),
    explanation.cut_excerpt: lambda text: [
        explanation.cut_excerpt(one, frozenset({"fee"}), text[:9])
        for one in evidence.read_evidence((text,)).sentences[:3]
    ],
    explanation.explain: lambda text: (
        explanation.explain(text, [cite(EVIDENCE)]),
        explanation.explain(SENTENCE, [cite(text)], text),
    ),
    explanation.find_signals: lambda text: (
        explanation.find_signals(text, [cite(EVIDENCE)]),
        explanation.find_signals(SENTENCE, [cite(text), cite(EVIDENCE)], text),
    ),
    findings.find_differences: lambda text: run_all(findings.find_differences(make_claim(text))),
    findings.negates: findings.negates,
    findings.find_wrong: lambda text: findings.find_wrong(make_claim(text)),
    other_forms.is_written: lambda text: [
        other_forms.is_written(item, evidence.read_evidence((written,)), None)
        for item, written in (
            (one, other) for one in items.find_items(text)[:3] for other in (EVIDENCE, text)
        )
    ],
    cells.is_nothing: cells.is_nothing,
    cells.unpack_cell: lambda text: cells.unpack_cell(str([text])),
    formats.read_chats: pass_through("jsonl", "a.jsonl"),
    **{
        formats.find_format(name).write: pass_through(name, file)
        for name, file in {
            "csv": "a.csv",
            "openai": "a.jsonl",
            "sharegpt": "b.jsonl",
            "parquet": "a.parquet",
            "ragtruth": "",
            "hf": "",
        }.items()
    },
    **{formats.find_format(name).read: read_file("a.json", make_tool(name)) for name in FILES},
    otel.read: read_file("a.json", make_openinference),
    formats.find_format("langfuse").read: read_file("a.json", make_langfuse),
    formats.find_format("mlflow").read: read_file("a.json", make_mlflow),
    span_files.flatten_attributes: lambda text: span_files.flatten_attributes({text: {text: text}}),
    row_order.read_timestamp: row_order.read_timestamp,
    conventions.unpack_text: conventions.unpack_text,
    traces.extract_messages: lambda text: traces.extract_messages([text], "user"),
    passages.extract_evidence: lambda text: list(
        passages.extract_evidence([text, {"metadata": {text: text}, "data": [[text, 1]]}], "tool")
    ),
    turns.read_content: lambda text: turns.read_content([{"type": "text", "text": text}] * 9, "x"),
    markdown.clean_markdown: lambda text: markdown.clean_markdown(f"{text}\n{text}-->", mdx=True),
    markdown.find_heading: markdown.find_heading,
    markdown.convert_tables: lambda text: markdown.convert_tables(f"<table {text}<table", str.upper),
    spaced_letters.join_spaced_letters: spaced_letters.join_spaced_letters,
    cell_lines.spread_lines: lambda text: cell_lines.spread_lines([text, text]),
    html_styles.find_hidden: lambda text: html.read(f"<style>{text}</style><p style='{text}'>"),
    html.read: lambda text: html.read(f"<p>{text}</p>".encode()),
    pdf.read: lambda text: pdf.read(make_pdf(text)),
    pdf_lines.is_right_to_left: pdf_lines.is_right_to_left,
    word.read: lambda text: word.read(make_word(text)),
    table_text.read: lambda text: table_text.read(f"Tool,Fee\n{text}".encode()),
    mail.read: lambda text: mail.read(f"Subject: Fees\n\n{text}".encode()),
    rtf.read: lambda text: rtf.read(f"{{\\rtf1 {text.replace('{', '')}".encode()),
    number_formats.show: lambda text: number_formats.show(12.5, text),
    annotations.list_conflicts: list_conflicts,
    compute_disorder: lambda text: compute_disorder(mark_units(text), mark_units(text[3:])),
    hallucinations.is_answer: hallucinations.is_answer,
    hallucinations.count_verdicts: lambda text: hallucinations.count_verdicts(
        talk(text).conversation, {0: judged(text)}
    ),
    repeated.is_poison_repeated: lambda text: repeated.is_poison_repeated(text, POISON),
    repeated.is_repeated_in: lambda text: repeated.is_repeated_in(text, REPLACED),
    repeated.is_value_in: lambda text: repeated.is_value_in(text, REPLACED.true),
    repeated.find_value: lambda text: repeated.find_value(text, REPLACED.true),
    repeated.is_stated: lambda text: repeated.is_stated(f"{text} {SENTENCE} {text}", SENTENCE),
    repeated.is_value_asserted: lambda text: repeated.is_value_asserted(text, REPLACED),
    giving_in.read_reply: lambda text: [giving_in.read_reply(one, text, text) for one in PRESSED],
    obedience.judge_obedience: lambda text: [
        obedience.judge_obedience(order, text, (text,), "") for order in load_orders()
    ],
    messages.count_questions: messages.count_questions,
    messages.is_only_pronouns: messages.is_only_pronouns,
    messages.compute_facts_given: lambda text: messages.compute_facts_given(text, [text, SENTENCE]),
    diversity.measure_parts: lambda text: diversity.measure_parts([text, SENTENCE], None, 2),
    blame.TurnReading.blame: lambda text: blame.TurnReading(
        support.DocumentIndex([cite(EVIDENCE)]), talk(text).conversation.turns[0], text
    ).blame(judged(text)),
    cited.judge_citations: lambda text: (
        cited.judge_citations(text, (cite(EVIDENCE), cite(EVIDENCE, "p#1")), text),
        cited.judge_citations(f"{SENTENCE} [1][2]", (cite(text), cite(EVIDENCE, "p#1"))),
    ),
    cited.list_names: lambda text: cited.list_names(cite(f"Title: {text}")),
    support.read_passage: support.read_passage,
    support.read_stems: support.read_stems,
    support.read_statement: lambda text: support.read_statement(text, text),
    tokens.count_tokens: tokens.count_tokens,
    tokens.count_hallucinated: lambda text: tokens.count_hallucinated(text, flag(text)),
    tokens.normalize_squad_text: tokens.normalize_squad_text,
    tokens.compute_token_f1: lambda text: tokens.compute_token_f1(text, text),
    page.show_turns: lambda text: page.show_turns(
        talk(text).conversation, [judged(text)], [LaneScore("d", "d", None)]
    ),
    first_screen.find_nearest: lambda text: first_screen.find_nearest(talk(text).conversation.turns[0], text),
    first_screen.cut_excerpt: lambda text: first_screen.cut_excerpt(
        text, [Span(start=9, end=19, text="x")], Span(start=9, end=19, text="x")
    ),
    reply_text.find_stretches: reply_text.find_stretches,
    reply_text.style_pieces: lambda text: reply_text.style_pieces([(text[:9], ()), (text[9:], (0,))]),
    page.show_passages: lambda text: page.show_passages(talk(text).conversation.turns[0]),
    page.find_citation: lambda text: page.find_citation(
        Span(start=0, end=1, text=text, evidence=text, reason=text),
        [page.ShownPassage(cite(text), page.cut_sentences(text))],
    ),
    page.cut_sentences: page.cut_sentences,
}
"""Function → what calls it with a text, in whichever of its arguments a stranger may have written."""
