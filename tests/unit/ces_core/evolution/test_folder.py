"""The folder is shared, changed as a whole, and believed only where it is whole."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from evolving_policies import added, begun

from ces_core.evolution.folder import STATE, EvolutionFolder, FolderError, basis_of
from ces_core.evolution.pairing import Pair
from ces_core.evolution.solvers import solver_of
from ces_core.evolution.state import BASE, State
from ces_core.learned.policy import SHIPPED


def test_an_empty_folder_has_the_base_live(tmp_path: Path) -> None:
    folder = EvolutionFolder(tmp_path / "evolution")
    assert (folder.state(), folder.versions(), folder.policy(BASE)) == (State(), [], None)
    with pytest.raises(FolderError, match="is no folder of an evolving policy"):
        folder.existing()


def test_many_change_the_state_at_once_and_no_change_is_lost(tmp_path: Path) -> None:
    folder = EvolutionFolder(tmp_path)

    def many() -> None:
        for _ in range(20):
            folder.change(lambda state: state.model_copy(update={"returned": (*state.returned, "v")}))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(folder.state().returned) == 80
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "state.json: Invalid JSON"),
        ('{"kind": "ces-evolution", "live": 3}', "live: Input should be a valid string"),
        ('{"kind": "ces-evolution", "lives": "v1"}', "lives: Extra inputs are not permitted"),
        ('{"kind": "something"}', "is of another program or version: something 1"),
    ],
)
def test_a_foreign_state_is_refused_and_left_alone(tmp_path: Path, content: str, said: str) -> None:
    folder = EvolutionFolder(tmp_path)
    (tmp_path / STATE).write_text(content)
    with pytest.raises(FolderError, match=said):
        folder.change(lambda state: state.promoted("v1", 1.0, ""))
    assert (tmp_path / STATE).read_text() == content


def test_versions_are_numbered_and_a_changed_file_is_refused(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    assert [added(folder, made_s=float(number)).name for number in range(2)] == ["v1", "v2"]
    assert [each.name for each in folder.versions()] == ["v1", "v2"]
    file = folder.policy("v2")
    assert file is not None
    assert file.read_bytes() == SHIPPED.read_bytes()
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(FolderError, match="is not the file of v2 any more"):
        folder.policy("v2")
    with pytest.raises(FolderError, match="there is no version 'v9'; known: v1, v2"):
        folder.policy("v9")


def test_the_scheduler_says_what_it_decides_with(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no scheduler has begun"):
        solver_of(EvolutionFolder(tmp_path), State(), BASE)
    policy = tmp_path / "mine.onnx"
    policy.write_bytes(SHIPPED.read_bytes())
    folder = begun(tmp_path / "evolution")
    own = folder.state()
    folder.change(lambda state: state.model_copy(update={"basis": basis_of("imitation", policy)}))
    state = folder.state()
    assert folder.policy(BASE) == policy
    assert solver_of(folder, state, BASE).name == "imitation"
    assert folder.candidacy("v1", state) != folder.candidacy("v1", own)  # what was found with another is not mixed in


def test_comparisons_are_kept_once_and_without_what_is_torn(tmp_path: Path) -> None:
    folder = EvolutionFolder(tmp_path)
    file = folder.candidacy("v1", State())
    pairs = [Pair(f"j{number}.1", 0.5 * number, number == 1, (1.0, 2.0)) for number in range(3)]
    assert folder.pairs(file) == []
    folder.keep(file, pairs[:2])
    with file.open("a") as stream:
        stream.write('{"name": "j9')
    assert folder.pairs(file) == pairs[:2]
    folder.keep(file, pairs[1:])
    assert folder.pairs(file) == pairs


def test_a_foreign_file_of_comparisons_is_refused(tmp_path: Path) -> None:
    folder = EvolutionFolder(tmp_path)
    file = folder.candidacy("v1", State())
    file.parent.mkdir()
    file.write_text("gains\n")
    with pytest.raises(FolderError, match="line 1 is no comparison; delete the file"):
        folder.pairs(file)
