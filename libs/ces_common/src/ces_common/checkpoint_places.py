"""Which node holds copies of a malleable job's checkpoints, and between which nodes these travel. Pure: both
controllers must find the same."""

from __future__ import annotations

from collections.abc import Container

from ces_common.messages.records import JobRecord
from ces_common.states import JOB_OVER


def copy_holder(job: JobRecord, known: Container[str]) -> str | None:
    """The node that is to copy the job's newest checkpoint: that of its first task on another node than rank 0's. A job
    that is on one node alone goes on with the node that has its last copy. None where there is neither."""
    if job.checkpoint_node is None or job.state in JOB_OVER:
        return None
    theirs = [each.node for each in sorted(job.allocations, key=lambda each: each.rank)]
    former = [node for each in job.checkpoints.stored for node in each.nodes]
    return next((node for node in (*theirs, *former) if node != job.checkpoint_node and node in known), None)


def restored_from(job: JobRecord, known: Container[str]) -> list[str]:
    """The other nodes from which the first task may fetch what it begins from, the best first."""
    if not job.checkpoints.restoring:
        return []
    former = [] if job.checkpoints.former is None else [job.checkpoints.former]
    nodes = [*former, *(node for each in job.checkpoints.stored for node in each.nodes)]
    return [node for node in dict.fromkeys(nodes) if node != job.checkpoint_node and node in known]


def transfers(job: JobRecord, known: Container[str]) -> list[tuple[str, str]]:
    """(From, to): the pairs of nodes between which checkpoints of the job travel now."""
    if job.checkpoint_node is None or job.state in JOB_OVER or job.checkpoint_node not in known:
        return []
    pairs = [(node, job.checkpoint_node) for node in restored_from(job, known)]
    holder = copy_holder(job, known)
    return pairs if holder is None else [*pairs, (job.checkpoint_node, holder)]
