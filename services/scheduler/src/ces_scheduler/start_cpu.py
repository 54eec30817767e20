"""What each worker of a job with elastic CPU has, and begins with. Pure."""

from __future__ import annotations

from ces_common.elastic import CpuRange
from ces_common.jobfile import Task
from ces_common.messages.events import QueueStatus
from ces_common.messages.records import JobRecord
from ces_common.quantities import show_cpu


def cpu_range(record: JobRecord) -> CpuRange | None:
    """None where its CPU is not CES's to choose."""
    elastic = None if record.spec is None else record.spec.elastic
    return None if elastic is None else elastic.cpu


def asked_cpu(record: JobRecord) -> int:
    """The millicores of each worker of the elastic group, as the job's file says."""
    assert record.spec is not None
    assert record.spec.elastic is not None
    group = record.spec.elastic.group
    return next(each.resources.cpu for each in record.spec.tasks if each.name == group)


def is_elastic(record: JobRecord, task: str) -> bool:
    """Whether the task is of the elastic group."""
    return record.spec is not None and record.spec.elastic is not None and record.spec.elastic.includes(task)


def worker_of(record: JobRecord) -> Task:
    """The first task of the elastic group."""
    return next(task for task in record.tasks if is_elastic(record, task.name))


def begins_with(record: JobRecord) -> int | None:
    """The millicores with which each worker of the elastic group is to begin; None where that is what its file says."""
    if cpu_range(record) is None:
        return None
    cpu = worker_of(record).cpu
    return None if cpu == asked_cpu(record) else cpu


def cpu_level(record: JobRecord) -> int:
    """What each worker of the elastic group of a job that has its place is to have now."""
    first = next(each for each in record.allocations if is_elastic(record, each.task))
    return record.tasks[first.rank].cpu if first.cpu_desired is None else first.cpu_desired


def at_cpu(record: JobRecord, cpu: int) -> JobRecord:
    """The waiting job, with ``cpu`` millicores at the start for each worker of its elastic group. It is expected to
    take as long as its file says, as when it runs: less is not certain."""
    assert record.spec is not None
    assert record.size is not None
    return record.model_copy(update={"tasks": record.spec.at_size(record.size).at_cpu(cpu).expand_tasks()})


def waits_for_more(record: JobRecord) -> bool:
    """Whether a waiting job could begin with less than it waits for now."""
    cpu = begins_with(record)
    return cpu is not None and cpu > asked_cpu(record)


def waiting_for_more(status: QueueStatus, record: JobRecord) -> QueueStatus:
    """With a reason that says so, if its job could begin with less; what lacks then does not lack for ever."""
    if status.reason is None or not waits_for_more(record):
        return status
    text = f"{status.reason.text}; if that takes too long, it begins with {show_cpu(asked_cpu(record))} for each worker"
    changes = {"text": text, "forever": False, "nodes": None}  # by nodes alone it would be told without the rest
    return status.model_copy(update={"reason": status.reason.model_copy(update=changes)})
