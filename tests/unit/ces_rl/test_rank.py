"""A rank of a run: told to end it stops after an update, and other ranks go on from there to what one run comes to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gang_tasks import run_in
from torch_gang import together

from ces_rl.gang import ALONE
from ces_rl.parcels import Unpacking
from ces_rl.rank import FILES
from ces_rl.run import CARD, Run, fingerprint, train

pytestmark = pytest.mark.needs("torch")


def small(folder: Path) -> Run:
    return Run.make("es", "placement", 1, {"updates": 4, "pairs": 3}, {"width": 16, "validation": 3}, folder)


def test_it_stops_when_one_is_told_and_goes_on_at_another_size_to_the_same_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = train(small(tmp_path / "whole"))
    spec, folder = small(tmp_path / "unused").spec(), tmp_path / "kept"
    folder.mkdir()
    stopped = together(2, run_in, spec, folder, 2)
    assert stopped == ["stopped after 2 of 4 updates", "stopped after 2 updates"]
    assert Run.open(folder / "run").algorithm.updates == 2
    assert run_in(ALONE, spec, folder, 0) == "done"
    card = json.loads((folder / "run" / CARD).read_text())
    assert (card["version"], card["steps"], card["complete"]) == (whole["version"], whole["steps"], True)
    assert card["scores"] == whole["scores"]
    assert card["version"].endswith(fingerprint(Run.open(folder / "run").algorithm.solution))

    said = capsys.readouterr().out.splitlines()
    assert "es learns placement with 1 ranks from its checkpoint" in said
    assert [json.loads(line)["progress"]["step"] for line in said if line.startswith('{"progress"')] == [3, 4]
    unpacking = Unpacking()
    for line in said:
        unpacking.take(line)
    assert unpacking.files.keys() == {*FILES, CARD, "policy.onnx"} - {"checkpoint.json"}
    assert all((folder / "run" / name).read_bytes() == content for name, content in unpacking.files.items())
