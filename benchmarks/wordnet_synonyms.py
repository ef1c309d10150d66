"""Make `simulator/rag_trust/wordnet.txt.gz` from a folder of WordNet 3.0's database files.

`python -m benchmarks.wordnet_synonyms FOLDER`; the folder holds `data.noun`, `noun.exc` and so on, as
WordNet's own release, Debian's package `wordnet-base` and NLTK's corpus `wordnet` do. Kept is what METEOR
needs: words without blanks or hyphens, which of them share a synset, and irregular forms.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from hallulab.simulator.rag_trust.meteor import FILE

_PARTS = ("noun", "verb", "adj", "adv")
_WORD = re.compile(r"[A-Za-z0-9]+")
_MARKER = re.compile(r"\((?:a|p|ip)\)$")
"""Where an adjective may stand, which the database writes behind it."""


def content(folder: Path) -> str:
    """Return the text of the file: for each part of speech its synsets, its other words, its exceptions."""
    return "\n".join(line for part in _PARTS for line in _part(folder, part)) + "\n"


def _part(folder: Path, part: str) -> Iterator[str]:
    synsets = sorted({" ".join(sorted(words)) for words in _synsets(folder / f"data.{part}")} - {""})
    shared = [line for line in synsets if " " in line]
    known = {word for line in shared for word in line.split()}
    yield f"# {part}"
    yield from shared
    yield f"# {part} alone"
    yield " ".join(sorted({line for line in synsets if " " not in line} - known))
    yield f"# {part} exceptions"
    for line in (folder / f"{part}.exc").read_text(encoding="latin-1").splitlines():
        if all(map(_WORD.fullmatch, line.split())):
            yield line.strip()


def _synsets(path: Path) -> Iterator[list[str]]:
    for line in path.read_text(encoding="latin-1").splitlines():
        if not line.startswith(" "):  # the licence
            fields = line.split(" ")
            names = (_MARKER.sub("", fields[4 + 2 * place]) for place in range(int(fields[3], 16)))
            yield [name for name in names if _WORD.fullmatch(name)]


if __name__ == "__main__":
    target = Path(__file__).parent.parent / "simulator" / "rag_trust" / FILE
    target.write_bytes(gzip.compress(content(Path(sys.argv[1])).encode(), 9, mtime=0))
