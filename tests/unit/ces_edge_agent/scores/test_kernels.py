"""The work itself: each does some, and tells how much."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import psutil
import pytest

from ces_edge_agent.scores import kernels
from ces_edge_agent.scores.kernels import MODEL, Absent, make, prepare
from ces_edge_agent.scores.plan import KINDS

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize(("kind", "work"), [("integer", 4), ("float", 8192), ("memory", 2**20)])
def test_what_every_agent_can_do(kind: str, work: float) -> None:
    kernel = make(kind, 1)  # type: ignore[arg-type]
    assert [kernel.step(), kernel.step()] == [work, work]
    kernel.close()


def test_matrices_and_inference_where_their_libraries_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    for kind, work, by in (("matrix", 2 * 128**3, "numpy"), ("inference", 1.0, "onnxruntime")):
        pytest.importorskip(by)
        prepare(kind)  # type: ignore[arg-type]
        kernel = make(kind, 1)  # type: ignore[arg-type]
        assert kernel.step() == work
        assert by in kernel.source


def test_what_is_there_is_known_without_loading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "find_spec", lambda _: None)
    assert [kind for kind in KINDS if kernels.installed(kind)] == list(KINDS[:5])


@pytest.mark.parametrize("kind", ["matrix", "inference"])
def test_what_is_not_installed_is_absent(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> ModuleType:
        raise ImportError(name)

    monkeypatch.setattr(kernels, "import_module", missing)
    with pytest.raises(Absent, match="is not installed"):
        prepare(kind)  # type: ignore[arg-type]


def test_memory_is_copied_only_where_enough_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free = SimpleNamespace(available=2**30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    assert "of 12 MiB" in make("memory", 5).source, "five of it, of an eighth of 1 GiB"
    free.available = 2**25
    with pytest.raises(Absent, match="too little memory"):
        make("memory", 1)


def test_the_network_passes_bytes_and_ends_its_sender() -> None:
    kernel = make("network", 1)
    try:
        assert sum(kernel.step() for _ in range(100)) > 0
    finally:
        kernel.close()


def test_the_model_is_the_one_that_its_script_makes() -> None:
    pytest.importorskip("onnx")
    spec = importlib.util.spec_from_file_location("inference_model", ROOT / "deploy/inference_model.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.FILE == MODEL
    assert MODEL.read_bytes() == script.model().SerializeToString(deterministic=True)
    assert MODEL.stat().st_size < 4096
