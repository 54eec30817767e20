"""CPU of workers that changes in place: more is held at once, less once they surely have no more. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ces_client.audit.inventory import Amounts, JobRequest
from ces_client.audit.lifecycle import Allocation, Job


def cpu_held(
    kind: str, job: Job, request: JobRequest | None, allocations: Mapping[str, Allocation], data: Mapping[str, Any]
) -> tuple[list[str], list[tuple[Allocation, int]]]:
    """What is wrong with a change that is ``committed``, or with what is ``released`` after one, and which allocations
    hold how much from now on. ``allocations``: all, by id."""
    if kind == "committed":
        workers = [allocations[each] for each in job.allocations]
        return list(_wrong_change(job, request, data)), list(_changed(workers, request, data["cpu"]))
    worker = allocations.get(data["allocation"])
    wrong = list(_wrong_release(worker, data))
    return wrong, [] if worker is None or wrong else [(worker, data["cpu"])]


def amounts_of(allocation: Allocation, asked: Amounts) -> Amounts:
    """What an allocation holds when its worker begins: of CPU what it is to have, where that was chosen."""
    return asked if allocation.cpu is None else (allocation.cpu, *asked[1:])


def wrong_start(name: str, request: JobRequest | None, made: Iterable[Allocation]) -> Iterator[str]:
    """What is wrong with the CPU with which workers of a plan begin."""
    for each in made:
        if each.cpu is not None:
            elastic = request is None or request.is_elastic(each.task)
            yield from _wrong_amount(name, request, each.cpu) if elastic else [f"{each.task} of {name} is not elastic"]


def _wrong_change(job: Job, request: JobRequest | None, data: Mapping[str, Any]) -> Iterator[str]:
    name, cpu = data["job"], data["cpu"]
    if job.state != "running" or data["attempt"] != job.attempt:
        yield f"the CPU of attempt {data['attempt']} changes while {name} is {job.state} at {job.attempt}"
    yield from _wrong_amount(name, request, cpu)


def _wrong_amount(name: str, request: JobRequest | None, cpu: int) -> Iterator[str]:
    if request is not None and request.cpu is None:
        yield f"the CPU of job {name} changes, and its file does not let it"
    elif request is not None and request.cpu is not None and not request.cpu[0] <= cpu <= request.cpu[1]:
        yield f"the workers of job {name} get {cpu}, outside of {request.cpu[0]} to {request.cpu[1]}"


def _changed(workers: Iterable[Allocation], request: JobRequest | None, cpu: int) -> Iterator[tuple[Allocation, int]]:
    """The running workers concerned, and what each holds of CPU from now on."""
    for worker in workers:
        if worker.state == "running" and (request is None or request.is_elastic(worker.task)):
            worker.cpu = cpu
            yield worker, max(worker.held[0], cpu)


def _wrong_release(worker: Allocation | None, data: Mapping[str, Any]) -> Iterator[str]:
    said = (data["job"], data["task"], data["node"])
    if worker is None or not worker.live or (worker.job, worker.task, worker.node) != said:
        yield f"allocation {data['allocation']} of {data['job']} gives up CPU, which holds none there"
    elif data["cpu"] != worker.cpu or data["cpu"] >= worker.held[0]:
        yield f"{worker.task} of {worker.job} holds {data['cpu']}, had {worker.held[0]} and was to have {worker.cpu}"
