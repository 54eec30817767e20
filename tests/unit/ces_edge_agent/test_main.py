"""Which runtime an agent's settings lead to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_common.runtime import RuntimeKind
from ces_edge_agent.__main__ import make_runtime
from ces_edge_agent.settings import AgentSettings


@pytest.mark.parametrize("kind", list(RuntimeKind))
def test_every_kind_has_a_runtime_of_its_own_module(
    kind: RuntimeKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CES_RUNTIME", kind.value)
    runtime = make_runtime(AgentSettings(node="a", state_dir=tmp_path))
    assert type(runtime).__module__ == f"ces_edge_agent.runtimes.{kind.value}"
