"""Options of the commands, checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_client.errors import BadInput
from ces_common.runtime import RuntimeKind
from ces_testbed.cli.options import NetworkChoice, checked_queue, choose, read_topology


def test_a_queue_file_that_services_would_refuse_starts_no_cluster(tmp_path: Path) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text("tenants: [{name: default, weight: -1}]")
    with pytest.raises(BadInput, match="queue") as refused:
        checked_queue(file)
    (error,) = refused.value.problem.errors
    assert error["field"] == "--queue"
    assert "tenants[0].weight: must be above 0, is -1" in error["problem"]
    file.write_text("patience: 1m")
    assert checked_queue(file) == file


def test_the_network_is_chosen_by_what_the_machine_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ces_testbed.cli.options.why_no_tc", lambda: "it needs root")
    choice = choose(RuntimeKind.PROCESS, NetworkChoice.AUTO)
    assert choice.network == "none"
    assert "bandwidth is not enforced" in choice.note
    assert "it needs root" in choice.note
    with pytest.raises(BadInput, match="tc cannot be used"):
        choose(RuntimeKind.PROCESS, NetworkChoice.TC)
    monkeypatch.setattr("ces_testbed.cli.options.why_no_tc", lambda: None)
    assert choose(RuntimeKind.PROCESS, NetworkChoice.AUTO).unenforced is None


def test_a_wrong_topology_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="topology"):
        read_topology(tmp_path / "none.yaml")
