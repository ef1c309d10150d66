from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.agents.retrieval.embeddings import SentenceEmbedder
from hallulab.scenarios.errors import OperationalError


def test_code_beside_an_embedding_models_weights_is_not_run(tmp_path: Path) -> None:
    """The experiment.json of a stranger's run folder may name any folder."""
    ran = tmp_path / "ran"
    (tmp_path / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "theirs.Module"}])
    )
    (tmp_path / "config_sentence_transformers.json").write_text("{}")
    (tmp_path / "theirs.py").write_text(f"open({str(ran)!r}, 'w')\nclass Module:\n    pass\n")
    with pytest.raises(OperationalError, match="cannot load the embedding model"):
        SentenceEmbedder(str(tmp_path)).queries(["a"])
    assert not ran.exists()
