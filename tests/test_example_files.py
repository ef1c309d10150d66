"""Files in `examples` for `bench` can be read, and name detectors and options that there are."""

from __future__ import annotations

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.metarag.detector import MetaRagOptions
from hallulab.detectors.registry import make_detector
from hallulab.simulator.bench.sweep import list_configurations, load_sweep
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.testing.scripted import scripted_pool
from tests.places import ROOT

EXAMPLES = ROOT / "examples"


def options_of(kind: str, options: dict[str, object]) -> tuple[object, ...]:
    """A detector with options can be made; what tells it from others."""
    pool, _ = scripted_pool(lambda _: "unused")
    detector = make_detector(kind, "d", DetectorContext(models=pool, options=options))
    return (detector.version, detector.threshold)


@pytest.mark.parametrize(("name", "number"), [("logic_graph_ablation", 14), ("logic_graph_sensitivity", 16)])
def test_a_sweep_has_as_many_configurations_as_the_paper_has_rows(name: str, number: int) -> None:
    """The ablation has them twice: for the detector as shipped, and for the paper's."""
    made = list_configurations(load_sweep(EXAMPLES / f"{name}.yaml"))
    assert len({options_of(one.kind, one.options) for one in made}) == len(made) == number


def test_the_configurations_of_metarags_table_2_are_nine_detectors() -> None:
    made = list_configurations(load_sweep(EXAMPLES / "metarag_ablation.yaml"))
    read = [MetaRagOptions.model_validate(one.options) for one in made]
    assert len({one.model_dump_json() for one in read}) == len(read) == 9


def test_all_rows_of_the_ablation_have_one_threshold() -> None:
    made = list_configurations(load_sweep(EXAMPLES / "logic_graph_ablation.yaml"))
    assert {options_of(one.kind, one.options)[1] for one in made} == {0.6}


@pytest.mark.parametrize(("name", "number"), [("logic_graph_variants", 15), ("evidence_chains", 11)])
def test_variants_of_the_docs_are_different_detectors(name: str, number: int) -> None:
    made = load_experiment(EXAMPLES / f"{name}.yaml", {}).detectors
    assert len({(one.kind, options_of(one.kind, one.options)) for one in made}) == len(made) == number
