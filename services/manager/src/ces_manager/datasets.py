"""What nodes offer to read, and whether a job asks for nothing else."""

from __future__ import annotations

from ces_common.db.tables import NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.jobfile import Input, JobFile
from ces_common.messages.reports import DataReport
from ces_manager.cluster import emit_node
from ces_manager.errors import Invalid

SHOWN = 5


def matters(tx: ReadTx, report: DataReport) -> bool:
    """Whether a report says anything new; most do not, and then nothing need be locked."""
    row = tx.session.get(NodeRow, report.node)
    return row is not None and (row.datasets, row.data_port) != _offer(report)


def take_report(tx: WriteTx, report: DataReport) -> None:
    """Write down what a node offers. What a node says that has not joined, or was forgotten, is ignored."""
    row = tx.session.get(NodeRow, report.node)
    if row is None or (row.datasets, row.data_port) == _offer(report):
        return
    row.datasets, row.data_port = _offer(report)
    row.version = tx.version
    emit_node(tx, row, "changed")


def check_inputs(tx: ReadTx, job: JobFile) -> None:
    """Raises Invalid for an input from a node that is not there, or that does not offer what is asked of it."""
    for i, data in enumerate(job.flows.inputs):
        row = tx.session.get(NodeRow, data.node)
        where = f"flows.inputs[{i}]"
        if row is None:
            raise Invalid(f"{where}.node", f"no node is named {data.node}; ces get nodes lists those that have joined")
        if not row.datasets:
            raise Invalid(
                f"{where}.node", f"node {row.name} offers no data: set CES_DATASETS on it, to a folder with datasets"
            )
        _check_names(tx, row, data, f"{where}.datasets")


def _check_names(tx: ReadTx, row: NodeRow, data: Input, field: str) -> None:
    for k, name in enumerate(data.datasets):
        if name not in row.datasets:
            raise Invalid(
                f"{field}[{k}]",
                f"node {row.name} offers no dataset {name}, only {_listed(row.datasets)}; name one of them, or put a "
                f"folder {name} into its CES_DATASETS",
            )


def _offer(report: DataReport) -> tuple[list[str], int]:
    return sorted(set(report.datasets)), report.port


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
