"""The example notebook against a real cluster: every cell works, and what it shows and plots is so."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from fault_cluster import FaultCluster
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from ces_common.messages.api import JobFlowsView

NOTEBOOK = Path(__file__).parents[2] / "examples/notebooks/from-submission-to-bandwidth.ipynb"
TOLERANCE = 1.1  # a class lets a burst through before it holds a flow to its rate
# What the plot was drawn with, told by matplotlib, and the job: in a cell of its own after the last.
DRAWN = """
import json
print(json.dumps({
    "job": submitted.id,
    "started": view.started_at.isoformat(),
    "lines": {line.get_label(): [list(map(float, point)) for point in line.get_xydata()] for line in axes.get_lines()},
    "carried": carried.model_dump(mode="json"),
}))
"""


class ThisPython(KernelSpecManager):
    """A kernel of the Python that runs these tests, whatever kernels the machine's user has."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name=kernel_name, language="python")


def run(cluster: FaultCluster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The notebook with what its cells showed, and DRAWN after them. Raises where a cell fails."""
    own = {"CES_URL": cluster.cluster.url, "CES_TOKEN": cluster.cluster.token}
    own |= {name: str(folder / name) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR")}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MPLBACKEND", raising=False)  # a kernel's own puts pictures into cells
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(DRAWN))
    manager = AsyncKernelManager(kernel_spec_manager=ThisPython())
    NotebookClient(notebook, km=manager, timeout=240, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute(
        env=dict(os.environ)
    )
    return notebook


def shown(notebook: Any, kind: str) -> list[str]:
    """What cells showed of a MIME type."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


@pytest.mark.needs("root")
def test_it_leads_from_submission_to_a_plot_of_what_was_measured(
    cluster: FaultCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = run(cluster, tmp_path, monkeypatch)
    told = json.loads(notebook.cells[-1].outputs[-1]["text"])
    job = told["job"]
    pages = shown(notebook, "text/html")
    cluster_map, reserved = (page for page in pages if "<svg" in page)
    assert "50%" not in cluster_map
    assert "50%" in reserved, "of each link, both by the plan and on the map"
    for node in cluster.nodes:
        assert f">{node}</text>" in cluster_map
    [dry_run] = [page for page in pages if "has a place" in page]
    [plan] = [page for page in pages if "committed" in page]
    planned = cluster.client.jobs.plan(job)
    assert len(planned.assignments) == 5
    for page in (dry_run, plan):
        assert all(f"<bdi>{task}</bdi>" in page for task in planned.assignments)
    for flow in planned.flows:
        assert f"<bdi>{' › '.join(flow.path) if len(flow.path) > 1 else 'within ' + flow.path[0]}</bdi>" in plan
    assert any("LAST MINUTE" in page for page in pages)
    assert "cancelled" in pages[-1]
    [picture] = shown(notebook, "image/png")
    assert len(picture) > 10_000

    # What was plotted is what the manager, asked anew, says was measured; and it is within what was given.
    kept = JobFlowsView.model_validate(cluster.client.jobs.flows(job, since=planned.committed_at).model_dump())
    drawn = JobFlowsView.model_validate(told["carried"])
    measured = {
        (flow.src, flow.dst): {s.at: s.measured for s in flow.hops[0].samples} for flow in kept.flows if flow.hops
    }
    over_links = [flow for flow in drawn.flows if len(flow.path) > 1]
    assert over_links
    for flow in over_links:
        points = told["lines"][f"{flow.src} → {flow.dst}"]
        assert len(points) >= 8
        samples = flow.hops[0].samples
        assert [y for _, y in points] == [sample.measured / 1e6 for sample in samples]
        assert all(measured[flow.src, flow.dst][sample.at] == sample.measured for sample in samples)
        assert flow.rate is not None
        assert max(y for _, y in points) > 1.0, "training sends megabits each second"
        assert max(y for _, y in points) < TOLERANCE * flow.rate / 1e6
        assert f"reserved: {flow.rate / 1e6:g} Mbit/s" in told["lines"]
