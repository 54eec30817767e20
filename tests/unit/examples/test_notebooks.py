"""Example notebooks are stored without what their cells showed: that is made where they run."""

from __future__ import annotations

import json

import pytest
from doc_pages import ROOT


@pytest.mark.parametrize("path", sorted((ROOT / "examples/notebooks").glob("*.ipynb")), ids=lambda path: path.name)
def test_no_outputs_are_stored(path):
    cells = json.loads(path.read_text())["cells"]
    assert {cell["cell_type"] for cell in cells} == {"markdown", "code"}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
