"""A cluster for a measurement: what it leaves behind."""

from __future__ import annotations

import pytest

from ces_experiments.common import emulated
from ces_testbed.errors import TestbedError
from ces_testbed.topology import TestbedNode, Topology


def test_what_a_cluster_leaves_behind_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stuck:
        def __init__(self, *_: object) -> None: ...

        def start(self) -> None:
            raise TestbedError("a service ends again and again")

        def stop(self) -> list[str]:
            return ["namespace x", "process 7"]

    monkeypatch.setattr(emulated, "Cluster", Stuck)
    topology = Topology(nodes=[TestbedNode(name="n1", cpu=1000, memory=2**30)])
    with pytest.raises(TestbedError, match="again and again"), emulated.emulated("x", topology):
        pass
    assert capsys.readouterr().err.splitlines() == [f"could not be removed: {x}" for x in ("namespace x", "process 7")]
