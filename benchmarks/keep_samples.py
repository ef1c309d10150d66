"""Keep the samples of the table of detectors in the repository: `python -m benchmarks.keep_samples DIR`.

DIR holds a folder for each data set, as `python -m benchmarks.detectors_table --data DIR` reads it. With
these samples the table needs only the repository's own data, in continuous integration too.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import build_parser
from benchmarks.detectors_table.__main__ import LIMIT
from benchmarks.detectors_table.samples import KEPT, SOURCES, keep, kept_sample


def main() -> None:
    """Write the samples and print their sizes."""
    parser = build_parser("keep_samples", __doc__)
    parser.add_argument("data", type=Path, metavar="DIR", help="folder that holds the data sets' folders")
    parser.add_argument("--to", type=Path, default=KEPT, help=f"folder for the samples (default: {KEPT})")
    given = parser.parse_args()
    for dataset in SOURCES:
        replies = keep(dataset, given.data, given.to, LIMIT)
        size = kept_sample(given.to, dataset).stat().st_size
        print(f"{dataset}: {replies} replies, {size / 1024:,.0f} KiB")


if __name__ == "__main__":
    main()
