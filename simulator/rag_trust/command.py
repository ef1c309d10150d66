"""Ask chatbots about poisoned and distracting documents, and report: `hallulab rag-trust`."""

from __future__ import annotations

from pathlib import Path

from hallulab.agents.progress import bars
from hallulab.agents.retrieval.embeddings import SentenceEmbedder
from hallulab.agents.retrieval.knowledge import DEFAULT_EMBEDDING_MODEL
from hallulab.agents.served_model import identify_model
from hallulab.chatbots.registry import read_chatbot_options
from hallulab.scenarios.datasets.hotpotqa import FILE, OFFICIAL, read_hotpotqa
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.text.wording import shorten_line
from hallulab.simulator.bench.build import require_unique_ids
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models
from hallulab.simulator.options.commands import RagTrustOptions
from hallulab.simulator.options.groups import to_path
from hallulab.simulator.rag_trust.answers import AnswerCollector, ask_all
from hallulab.simulator.rag_trust.config import DIMENSIONS, RagTrustConfig, list_tasks, load_config
from hallulab.simulator.rag_trust.document import COLUMNS, build_document
from hallulab.simulator.rag_trust.report import Models, RagTrustReport, build_report
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import check_outputs, name_folder_by_time
from hallulab.simulator.show.columns import Column, format_csv
from hallulab.simulator.show.html import render_page


class RagTrustFolder(RunFolder):
    """The folder of a stress test: a journal of answers, and the reports made from it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.answers = path / "answers.jsonl"
        self.report = path / "stress.json"
        self.table = path / "stress.csv"
        self.page = path / "stress.html"
        self.derived = (self.report, self.table, self.page)
        self.files = (*self.derived, self.answers)


async def run_from_options(options: RagTrustOptions) -> tuple[RagTrustFolder, RagTrustReport]:
    """Get the answers that the folder of the options lacks, and write the reports.

    Raises:
        UsageError: an option, the data or the stress file is wrong.
        OperationalError: server, endpoint or disk failed, or no answer could be had.
    """
    data = None if options.data is None else str(options.data)
    fields = {"data": data, "questions": options.questions, "seed": options.seed}
    config = load_config(options.config_path, {**options.collect_model_fields(), **fields})
    folder = RagTrustFolder(to_path(options.out) or name_folder_by_time())
    return folder, await run_rag_trust(config, folder, RunSettings.from_options(options, options.fresh))


async def run_rag_trust(
    config: RagTrustConfig, folder: RagTrustFolder, settings: RunSettings
) -> RagTrustReport:
    """Get the answers that the folder lacks, and write the reports.

    Raises:
        UsageError: the data or an option of a chatbot is wrong, or the data set is too small.
        OperationalError: server, endpoint or disk failed, or no answer could be had.
    """
    data = Path(config.data or "")
    check_outputs({}, (data / FILE, data / OFFICIAL), {"--out": folder.path})
    everything = read_hotpotqa(data)
    if not everything:
        raise UsageError(f"{data}: there is no question in it. Give HotpotQA's distractor setting.")
    require_unique_ids(everything, data)
    wanted = list(list_tasks(config, everything[: config.questions], everything))
    async with open_pool(config.experiment, open_recording(settings), settings.transport) as pool:
        asking = AnswerCollector(config, pool, SentenceEmbedder(DEFAULT_EMBEDDING_MODEL))
        for task in wanted[: len(config.answering) * len(config.chatbots) * len(config.strategies)]:
            read_chatbot_options(task.chatbot.kind, asking.build_options(task))
        with folder.claimed():
            if settings.fresh:
                folder.clear()
            async with serve_models(pool, settings):
                models = Models(
                    chatbots={name: identify_model(pool.get(name)) for name in config.answering},
                    judge=identify_model(pool.get(config.judge)),
                )
                with bars(settings.quiet) as shown:
                    bar = shown.add_task("answers", total=len(wanted))
                    answers = await ask_all(
                        asking, wanted, folder.answers, config.experiment.at_once, lambda: shown.advance(bar)
                    )
            if all(answer.reply is None for answer in answers):
                first = shorten_line(answers[0].error or "")
                raise OperationalError(f"no question was answered. The first error: {first}")
            report = build_report(config, models, answers)
            every = {column.value: column for dimension in DIMENSIONS for column in COLUMNS[dimension]}
            columns = [Column("Dimension", "dimension", "what is scored", kind="text"), *every.values()]
            write_together(
                {
                    folder.report: report.text(),
                    folder.table: format_csv(columns, report.rows),
                    folder.page: render_page(build_document(report)),
                }
            )
    return report
