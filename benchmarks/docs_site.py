"""Make the pages of the documentation that the code writes: commands, schemas of files, `llms.txt`.

`mkdocs build` (`make docs`) calls `on_files` (mkdocs.yml, `hooks`). Nothing of this is kept in `docs`, so it
cannot become stale.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from hallulab.simulator.cli.main import app
from hallulab.simulator.cli.schemas import FILES, render_schema


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the site."""
    made = {
        "commands.md": render_commands(),
        "schema.md": render_schema_page(),
        **{f"schema/{name}.json": render_schema(name) for name in FILES},
    }
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    assert config.nav is not None
    index = render_llms(config.nav, Path(config.docs_dir), made)
    files.append(File.generated(config, "llms.txt", content=index))
    return files


def render_commands() -> str:
    """Return the page of all commands, from their `--help`."""
    group = typer.main.get_command(app)
    parts = [
        "# Commands\n\n"
        "What `hallulab COMMAND --help` says, for each command. Exit codes: 0 done, 1 an operational error "
        "(a server, a disk), 2 a mistake in what was asked for, 3 runs that cannot be compared, 130 "
        "interrupted.\n"
    ]
    parts += [_render_command(path, command) for path, command in _list_commands(group, "hallulab")]
    return "\n".join(parts)


def _list_commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the commands below a group that its help shows, in its order, with their whole names."""
    for name in group.list_commands(None):
        command = group.commands[name]
        if hasattr(command, "commands"):
            yield from _list_commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _render_command(path: str, command: Any) -> str:
    context = command.make_context(path, [], resilient_parsing=True)
    usage = " ".join((path, *command.collect_usage_pieces(context)))
    rows = [record for param in command.get_params(context) if (record := param.get_help_record(context))]
    lines = [f"| `{names}` | {_escape(meaning)} |" for names, meaning in rows]
    said = _escape(inspect.cleandoc(command.help or ""))
    return "\n".join(
        [f"## {path}\n", f"{said}\n", f"    {usage}\n", "| flag | meaning |", "|---|---|", *lines, ""]
    )


def _escape(text: str) -> str:
    """Return a text for a cell of a table: no markup of HTML, no end of the cell."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")


def render_schema_page() -> str:
    """Return the page that names the schemas of files."""
    rows = [
        f"| [{name}.json](schema/{name}.json) | {file.what} ([{file.page}]({file.page})) |"
        for name, file in FILES.items()
    ]
    return (
        "# Schemas of files\n\n"
        "JSON Schema (2020-12) of the files that you write, made from the classes that read them. An editor "
        "completes and checks YAML by it, if the file's first line names your copy of the schema, which "
        "`hallulab schema experiment --out experiment.schema.json` writes:\n\n"
        "    # yaml-language-server: $schema=experiment.schema.json\n\n"
        "`hallulab init` writes both.\n\n"
        "hallulab itself checks more than a schema can say: two chatbots may not have one name.\n\n"
        "| schema | of |\n|---|---|\n" + "\n".join(rows) + "\n"
    )


def render_llms(nav: Iterable[Any], docs: Path, made: Mapping[str, str]) -> str:
    """Return `llms.txt` (llmstxt.org): what each page is about, for language models.

    Args:
        nav: the navigation of mkdocs.yml.
        docs: the folder of the pages.
        made: pages that are in no folder, by name.
    """
    lines = ["# hallulab", ""]
    for title, inside in (item for entry in nav for item in entry.items()):
        if isinstance(inside, str):
            lines += [f"> {_summarize(docs / inside)}", ""]
            continue
        lines += [f"## {title}", ""]
        for name, page in _list_pages(inside):
            text = made[page] if page in made else (docs / page).read_text(encoding="utf-8")
            lines.append(f"- [{name}]({page.removesuffix('.md')}.html): {_first_sentence(text)}")
        lines.append("")
    return "\n".join(lines)


def _list_pages(nav: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield title and file of each page, however deep."""
    for title, inside in (item for entry in nav for item in entry.items()):
        if isinstance(inside, str):
            yield title, inside
        else:
            yield from _list_pages(inside)


def _summarize(page: Path) -> str:
    return _first_sentence(page.read_text(encoding="utf-8"))


def _first_sentence(text: str) -> str:
    """Return the first sentence of a page's text, without links and marks."""
    paragraph = next(part for part in text.split("\n\n") if re.match(r"(?!```)[`*\w\[]", part))
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split())).replace("**", "")
    return re.split(r"(?<=[.?!]) ", plain)[0]
