"""The measurements: two jobs that fill their links both ways over two hops, while strangers flood them both ways."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from rich.progress import Progress

from ces_common.shares import LinkKind
from ces_experiments.common.console import told
from ces_experiments.common.interruption import ended_tidily
from ces_experiments.common.machine import CoreTime
from ces_experiments.common.report import Found
from ces_experiments.common.spread import milliseconds
from ces_experiments.network.agents import DataPlanes
from ces_experiments.network.flood import flood
from ces_experiments.network.rates import Sample, each, errors, in_force_after, worst
from ces_experiments.network.row import Row, Worker, filled, row_of
from ces_experiments.network.traffic import Datagrams, Stream, knocking, streams
from ces_testbed.capability import why_no_tc
from ces_testbed.errors import TestbedError

MBIT = 1_000_000
MANY = 50
MANY_RATE = 10 * MBIT
KNOCK_S = 0.5  # between two new connections of a pair
CHANGE_S = 1.5  # how long each allocation stays
CHANGES_FROM, CHANGES_TO = 10 * MBIT, 150 * MBIT
BESIDE_CHANGES = 50 * MBIT
ELASTIC, ELASTIC_MOST = 10 * MBIT, 80 * MBIT  # allocation and maximum of the flows that borrow
ARRIVING = 80 * MBIT
UNDISTURBED = 0.015  # of the cores, that other machines of the same hypervisor had at most
PATIENCE = 4  # a measurement may take this many times as long as the undisturbed seconds that it wants
WATCH_S = 0.005
SETTLE_S = 1.0


@dataclass(frozen=True)
class Question:
    """``rates`` in bit/s; ``seconds`` of each measurement; ``changes`` of a live flow's allocation; ``links``: of which
    kind they are."""

    rates: Sequence[int] = (MBIT, 10 * MBIT, 100 * MBIT, 1000 * MBIT)
    seconds: int = 10
    changes: int = 20
    seed: int = 1
    links: LinkKind = "veth"


def measure(question: Question, progress: Progress) -> Found:
    """All figures. Raises TestbedError."""
    if (reason := why_no_tc()) is not None:
        raise TestbedError(f"ces bench network shapes real links: {reason}")
    with ended_tidily():
        return Found({"question": asdict(question)} | _measured(question, told(progress, 2 * len(question.rates) + 3)))


def _measured(question: Question, say: Callable[[str], None]) -> dict[str, Any]:
    rates: dict[str, Any] = {}
    for rate in question.rates:
        say(f"flows of {rate / MBIT:g} Mbit/s")
        rates[str(rate)] = rate_of_flows(rate, question.seconds, question.links)
    victims: dict[str, Any] = {}
    for rate in question.rates:
        say(f"a victim of {rate / MBIT:g} Mbit/s")
        victims[str(rate)] = victim(rate, question.seconds, question.links)
    say("elastic flows, and a reserved one that arrives")
    borrowed = elastic(question.seconds, question.links)
    say(f"{question.changes} changes of a live flow's allocation")
    changed = changes(question.changes, question.seed, question.links)
    say(f"{MANY} flows through one node")
    many = many_flows(question.seconds, question.links)
    return {"rates": rates, "victims": victims, "elastic": borrowed, "changes": changed, "many": many}


@dataclass(frozen=True)
class Seen:
    """What was counted of each stream at the end of each second, its start included; and of each second the share of
    the cores that other machines had: packets that nobody moves in time are no rate that was not kept."""

    samples: list[list[Sample]]
    stolen: list[float]

    def calm(self) -> list[int]:
        """The undisturbed seconds."""
        return [second for second, share in enumerate(self.stolen) if share <= UNDISTURBED]

    def rates(self) -> list[list[float]]:
        """Of each stream: bit/s in the undisturbed seconds but the first, or in all but the first where none was."""
        chosen = [second for second in self.calm() if second] or range(1, len(self.stolen))
        return [[rates[second] for second in chosen] for rates in map(each, self.samples)]


@dataclass
class Site:
    """Two jobs and the strangers, a worker of each on both ends of the row; ``pairs``: the jobs' flows."""

    row: Row
    planes: DataPlanes
    pairs: list[tuple[Worker, Worker]]
    strangers: tuple[Worker, Worker]

    def allocate(self, rates: Sequence[int]) -> tuple[float, float]:
        """Give each pair its rate; the moments of the command and of the last answer."""
        for number, ((src, dst), rate) in enumerate(zip(self.pairs, rates, strict=True), 1):
            self.row.reserve(number, src, dst, rate)
        return self.planes.apply()


@contextmanager
def site_of(bandwidth: int, links: LinkKind) -> Iterator[Site]:
    with row_of(bandwidth, links) as row, closing(DataPlanes(row)) as planes:
        near = {job: row.worker(f"{job}1", 1, job) for job in "abs"}
        far = {job: row.worker(f"{job}3", 3, job) for job in "abs"}
        pairs = [pair for job in "ab" for pair in ((near[job], far[job]), (far[job], near[job]))]
        yield Site(row, planes, pairs, (near["s"], far["s"]))


@contextmanager
def floods(one: Worker, other: Worker, rate: int) -> Iterator[None]:
    """Both ways."""
    with flood(one, other, rate), flood(other, one, rate):
        yield


def rate_of_flows(rate: int, seconds: int, links: LinkKind = "veth") -> dict[str, Any]:
    """Four flows of two jobs start at once on links that they fill, under a flood; each second of each is seen."""
    with site_of(filled(rate, 2), links) as site:
        site.allocate([rate] * 4)
        knocked = [(site.pairs[0]), (site.pairs[3])]
        with ExitStack() as stack:
            idle = [stack.enter_context(knocking(*pair, every_s=KNOCK_S / 10)) for pair in knocked]
            time.sleep(SETTLE_S)
        with ExitStack() as stack:
            opened = stack.enter_context(streams(*site.pairs))
            stack.enter_context(floods(*site.strangers, rate=site.row.bandwidth))
            knocks = [stack.enter_context(knocking(*pair, every_s=KNOCK_S)) for pair in knocked]
            seen = _seconds(opened, seconds)
            sent_again = sum(stream.retransmitted() for stream in opened)
            _unbroken(opened)
    return {
        **_accuracy(seen.samples, rate, seen),
        "segments_sent_again": sent_again,
        "opening_idle_ms": milliseconds(took for each in idle for took in each.took_s),
        "opening_ms": milliseconds(took for each in knocks for took in each.took_s),
        "not_opened_idle": sum(each.failed for each in idle),
        "not_opened": sum(each.failed for each in knocks),
    }


def victim(rate: int, seconds: int, links: LinkKind = "veth") -> dict[str, Any]:
    """What a job's flows lose when another job's workers flood through their reservation, and strangers beside it."""
    with site_of(filled(rate, 2), links) as site:
        site.allocate([rate] * 4)
        with streams(*site.pairs[:2]) as opened:
            alone = _seconds(opened, seconds)
            with floods(*site.pairs[2], rate=site.row.bandwidth), floods(*site.strangers, rate=site.row.bandwidth):
                flooded = _seconds(opened, seconds)
            _unbroken(opened)
    before, after = alone.rates(), flooded.rates()
    lost = [100 * (1 - fmean(now) / fmean(then)) for then, now in zip(before, after, strict=True)]
    lost_at_worst = [100 * (1 - min(now) / fmean(then)) for then, now in zip(before, after, strict=True)]
    return {
        "lost": max(lost),
        "lost_worst_second": max(lost_at_worst),
        "undisturbed": len(flooded.calm()),
        "seconds": len(flooded.stolen),
        "flows": len(opened),
    }


def elastic(seconds: int, links: LinkKind = "veth") -> dict[str, Any]:
    """One job's flows borrow up to their maximum; then the other job's are reserved, and fill what was idle."""
    with site_of(filled(ELASTIC + ARRIVING, 1), links) as site:
        borrowing, arriving = site.pairs[:2], site.pairs[2:]
        for number, (src, dst) in enumerate(borrowing, 1):
            site.row.reserve(number, src, dst, ELASTIC, ELASTIC_MOST)
        site.planes.apply()
        with ExitStack() as stack:
            lent = stack.enter_context(streams(*borrowing))
            stack.enter_context(floods(*site.strangers, rate=site.row.bandwidth))
            alone = _seconds(lent, seconds)
            for number, (src, dst) in enumerate(arriving, len(borrowing) + 1):
                site.row.reserve(number, src, dst, ARRIVING)
            site.planes.apply()
            knocks = stack.enter_context(knocking(*arriving[0], every_s=KNOCK_S))
            opened = stack.enter_context(streams(*arriving))
            seen = _seconds([*opened, *lent], seconds)
            _unbroken([*opened, *lent])
    kept = [rate for flow in seen.rates()[len(opened) :] for rate in flow]
    return {
        "allocated": ELASTIC,
        "most": ELASTIC_MOST,
        "alone": min(rate for flow in alone.rates() for rate in flow),
        "beside_least": min(kept),
        "beside_mean": sum(kept) / len(kept),
        "arriving": _accuracy(seen.samples[: len(opened)], ARRIVING, seen),
        "opening_ms": milliseconds(knocks.took_s),
        "not_opened": knocks.failed,
    }


def changes(count: int, seed: int, links: LinkKind = "veth") -> dict[str, Any]:
    """How long after the command at the agents live flows have a new rate, the other flows saturated: one way by UDP,
    which shows the shaping alone, the other by TCP, which has to find the new rate by itself."""
    chance = random.Random(seed)
    rates = [CHANGES_FROM]
    while len(rates) <= count:
        rate = round(CHANGES_FROM * (CHANGES_TO / CHANGES_FROM) ** chance.random())
        if not 2 / 3 < rate / rates[-1] < 3 / 2:  # near rates could not be told apart
            rates.append(rate)
    beside = BESIDE_CHANGES
    applied: list[float] = []
    by_udp: list[float | None] = []
    by_tcp: list[float | None] = []
    stolen: list[float] = []
    with site_of(filled(CHANGES_TO + beside, 1), links) as site, ExitStack() as stack:
        site.allocate([rates[0], rates[0], beside, beside])
        opened = stack.enter_context(streams(site.pairs[0], *site.pairs[2:]))
        datagrams = Datagrams(site.pairs[1][1])
        stack.callback(datagrams.close)
        stack.enter_context(flood(*site.pairs[1], rate=site.row.bandwidth))
        stack.enter_context(floods(*site.strangers, rate=site.row.bandwidth))
        for stream in opened:
            stream.start()
        time.sleep(SETTLE_S)
        for rate in rates[1:]:
            before = CoreTime.now()
            with _watched(opened[0]) as tcp:
                commanded, answered = site.allocate([rate, rate, beside, beside])
                time.sleep(CHANGE_S)
            stolen.append(CoreTime.now().stolen_since(before))
            applied.append(answered - commanded)
            by_udp.append(in_force_after(datagrams.since(commanded), commanded, rate))
            by_tcp.append(in_force_after(tcp, commanded, rate))
        broken = sum(stream.broken is not None for stream in opened)
    return {
        "rates": rates,
        "applied_ms": [each * 1000 for each in applied],
        "by_udp_ms": [None if each is None else each * 1000 for each in by_udp],
        "by_tcp_ms": [None if each is None else each * 1000 for each in by_tcp],
        "stolen": stolen,
        "broken_connections": broken,
    }


def many_flows(seconds: int, links: LinkKind = "veth") -> dict[str, Any]:
    """Flows of many pairs of workers cross the middle node, all saturated, on links that they fill."""
    with row_of(filled(MANY_RATE, MANY // 2), links) as row, closing(DataPlanes(row)) as planes:
        pairs = []
        for index in range(MANY // 2):
            ends = row.worker(f"m{index}a", 1, f"m{index}"), row.worker(f"m{index}b", 3, f"m{index}")
            pairs += [ends, ends[::-1]]
        strangers = row.worker("s1", 1, "s"), row.worker("s3", 3, "s")
        for number, (src, dst) in enumerate(pairs, 1):
            row.reserve(number, src, dst, MANY_RATE)
        planes.apply()
        with streams(*pairs) as opened, floods(*strangers, rate=row.bandwidth):
            used = {host: plane.cpu_s() for host, plane in planes.of.items()}
            start = time.monotonic()
            seen = _seconds(opened, seconds)
            elapsed = time.monotonic() - start
            shares = {f"n{host}": 100 * (plane.cpu_s() - used[host]) / elapsed for host, plane in planes.of.items()}
            _unbroken(opened)
    return {**_accuracy(seen.samples, MANY_RATE, seen), "agent_cpu": shares}


def _seconds(opened: Sequence[Stream], seconds: int) -> Seen:
    """Let the streams send until ``seconds`` undisturbed seconds are over, or ``PATIENCE`` times as many in all."""
    start = time.monotonic()
    seen = Seen([], [])
    before = CoreTime.now()
    for stream in opened:
        seen.samples.append([(time.monotonic(), stream.frames())])
        stream.start()
    while len(seen.stolen) < PATIENCE * seconds and len(seen.calm()) < seconds:
        time.sleep(max(0.0, start + len(seen.stolen) + 1 - time.monotonic()))
        for stream, samples in zip(opened, seen.samples, strict=True):
            samples.append((time.monotonic(), stream.frames()))
        now = CoreTime.now()
        seen.stolen.append(now.stolen_since(before))
        before = now
    return seen


def _accuracy(samples: Sequence[Sequence[Sample]], rate: int, seen: Seen) -> dict[str, Any]:
    """Of each flow's samples: percent off the rate. ``worst_undisturbed``: None where there was no such second."""
    off = [errors(each(flow), rate) for flow in samples]
    later = [value for flow in off for value in flow[1:]]
    calm = [second for second in seen.calm() if second]
    return {
        "flows": len(off),
        "seconds": len(off[0]),
        "first_second": worst([flow[0] for flow in off]),
        "first_disturbed": 0 not in seen.calm(),
        "worst_second": worst(later),
        "undisturbed": len(calm),
        "worst_undisturbed": worst([flow[second] for flow in off for second in calm]) if calm else None,
        "within_1": 100 * sum(abs(value) <= 1 for value in later) / len(later),
        "mean": sum(later) / len(later),
        "each_second": off,
        "stolen": seen.stolen,
    }


@contextmanager
def _watched(stream: Stream) -> Iterator[list[Sample]]:
    """Count what arrives every few milliseconds."""
    samples: list[Sample] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(WATCH_S):
            samples.append((time.monotonic(), stream.frames()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def _unbroken(opened: Sequence[Stream]) -> None:
    for stream in opened:
        if stream.broken is not None:
            raise TestbedError(f"a connection broke: {stream.broken}")
