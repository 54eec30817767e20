"""What an agent's settings lead to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_common.runtime import RuntimeKind
from ces_edge_agent import __main__ as main
from ces_edge_agent.__main__ import energy_account, make_runtime
from ces_edge_agent.energy.meters import Model
from ces_edge_agent.settings import AgentSettings


@pytest.mark.parametrize("kind", list(RuntimeKind))
def test_every_kind_has_a_runtime_of_its_own_module(
    kind: RuntimeKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CES_RUNTIME", kind.value)
    runtime = make_runtime(AgentSettings(node="a", state_dir=tmp_path))
    assert type(runtime).__module__ == f"ces_edge_agent.runtimes.{kind.value}"


def test_idling_is_divided_by_the_whole_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which the agent may offer only a part."""
    monkeypatch.setattr(main, "found_meter", lambda *_: Model([10, 10]))
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    account = energy_account(AgentSettings(node="a", state_dir=tmp_path, node_cpu=1, power_idle=10, power_peak=10))
    assert account is not None
    account.look(1.0, {}, {})
    report = account.look(2.0, {}, {"w": 1000})
    assert report is not None
    assert (report.total, report.allocations) == (10_000_000, {"w": 2_500_000})
