"""``python -m ces_scheduler.shadow FOLDER [--auto]``: decides logged problems again with the policy that was live
before, and with the newest candidate, at idle priority. With ``--auto`` it promotes and takes back as the gate says."""

from __future__ import annotations

import os
import sys
import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from ces_common.logs import configure_logging
from ces_core.evolution.decision_log import Logged, SegmentReader, segments
from ces_core.evolution.folder import MOST_PAIRS, EvolutionFolder
from ces_core.evolution.gate import judged, must_return
from ces_core.evolution.pairing import Pair, compared, pairs_of
from ces_core.evolution.solvers import solver_of
from ces_core.evolution.state import State, Version, candidate_of, why_promoted
from ces_core.solver import Solver

log = structlog.get_logger()
SHARE = 0.05
"""Of one core, from the start of the process on; at most."""
LATEST = 200
"""Decisions that wait to be made again. Older ones are left out: it is the latest that say how a policy does now."""
POLL_S = 2.0
Now = Callable[[], float]


class Tail:
    """The decisions that a log gains, with the times of all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: dict[Path, SegmentReader] = {}
        self._times: list[float] = []
        self.latest: deque[Logged] = deque(maxlen=LATEST)

    def read(self) -> None:
        """Raises DecisionLogError, and OSError."""
        there = segments(self._folder)
        self._readers = {path: self._readers.get(path) or SegmentReader(path) for path in there}
        for reader in self._readers.values():
            try:
                for logged in reader.read():
                    insort(self._times, logged.at_s)
                    self.latest.append(logged)
            except FileNotFoundError:
                continue  # it was the oldest, and is deleted by now

    def since(self, at_s: float) -> int:
        return len(self._times) - bisect_left(self._times, at_s)


class Shadow:
    """``auto``: whether it changes what is live, or only says what it would. ``now``: Unix time."""

    def __init__(self, folder: EvolutionFolder, *, auto: bool, now: Now = time.time) -> None:
        self._folder, self._auto, self._now = folder, auto, now
        self._tail = Tail(folder.log)
        self._pairs: dict[Path, tuple[int, dict[str, Pair]]] = {}
        self._solvers: dict[str, Solver] = {}
        self._said: str | None = None

    def step(self) -> bool:
        """Decide one logged problem again, and see what follows; returns whether there was one. Raises FolderError,
        StateError, DecisionLogError, UnknownSolverError, PolicyError and OSError."""
        state = self._folder.state()
        if state.frozen or state.basis is None:
            return False
        self._tail.read()
        if not self._tail.latest:
            return False
        logged = self._tail.latest.popleft()
        if state.former is not None and logged.at_s >= (state.promoted_s or 0.0):
            self._compare(self._folder.watch(state), logged, state.former, state.live)
            state = self._look_back(state)
        candidate = candidate_of(state, self._folder.versions())
        if candidate is not None and logged.at_s > candidate.learned_until_s:
            self._compare(self._folder.candidacy(candidate.name, state), logged, state.live, candidate.name)
            self._look_forward(state, candidate)
        return True

    def _look_back(self, state: State) -> State:
        found = pairs_of(self._known(self._folder.watch(state)).values())
        decisions = self._tail.since(state.promoted_s or 0.0)
        why = must_return(found, decisions, frozen=state.frozen)
        if why is None:
            return state
        if not self._auto:
            self._say(f"{state.live} should be taken back: {why}")
            return state
        log.warning("a policy is taken back", version=state.live, former=state.former, reason=why)
        return self._change(state, lambda now: now.rolled_back(self._now(), why))

    def _look_forward(self, state: State, candidate: Version) -> None:
        found = pairs_of(self._known(self._folder.candidacy(candidate.name, state)).values())
        verdict = judged(found, frozen=state.frozen, promoted_s=state.promoted_s, now_s=self._now())
        if not verdict.promoted:
            return
        why = why_promoted(verdict.interval)
        if not self._auto:
            self._say(f"{candidate.name} may be promoted: {why}")
            return
        log.info("a policy is promoted", version=candidate.name, former=state.live, reason=why)
        self._change(state, lambda now: now.promoted(candidate.name, self._now(), why))

    def _change(self, judged: State, change: Callable[[State], State]) -> State:
        """Unless the state is another by now: an operator was quicker."""
        return self._folder.change(lambda now: change(now) if now == judged else now)

    def _compare(self, file: Path, logged: Logged, other: str, one: str) -> None:
        known = self._known(file)
        if logged.name in known or len(known) >= MOST_PAIRS:
            return
        pair = compared(logged, self._solver(other, logged), self._solver(one, logged))
        if pair is not None:
            self._folder.keep(file, [pair])
            self._pairs[file] = file.stat().st_size, known | {pair.name: pair}

    def _known(self, file: Path) -> dict[str, Pair]:
        """Read again where somebody else has added some, such as `ces evolve replay`."""
        size = file.stat().st_size if file.exists() else 0
        if self._pairs.get(file, (None,))[0] != size:
            self._pairs[file] = size, {pair.name: pair for pair in self._folder.pairs(file)}
        return self._pairs[file][1]

    def _solver(self, version: str, logged: Logged) -> Solver:
        if version not in self._solvers:
            solver = solver_of(self._folder, self._folder.state(), version)
            with suppress(Exception):  # what is paid for once is no part of a decision
                solver.solve(logged.problem)
            self._solvers[version] = solver
        return self._solvers[version]

    def _say(self, text: str) -> None:
        if text.partition(":")[0] != self._said:
            log.info(text)
            self._said = text.partition(":")[0]


def rest_s(cpu_s: float, wall_s: float, share: float = SHARE) -> float:
    """How long to rest so that the CPU time used by then is no more than its share of the time that has passed."""
    return max(0.0, cpu_s / share - wall_s)


def step_back() -> None:
    """To idle priority: this process runs when no other wants to."""
    os.nice(19)
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main(arguments: Sequence[str]) -> None:
    """Until its parent is gone. What goes wrong is said, and tried again in a minute."""
    configure_logging("scheduler-shadow", "info")
    step_back()
    parent, began = os.getppid(), time.monotonic()
    shadow = Shadow(EvolutionFolder(Path(arguments[0])), auto="--auto" in arguments)
    failed = False
    while os.getppid() == parent:
        wait_s = 0.0
        try:
            wait_s = 0.0 if shadow.step() else POLL_S
            failed = False
        except Exception as error:
            if not failed:
                log.error("the shadow cannot go on", error=f"{type(error).__name__}: {error}")
            failed, wait_s = True, 60.0
        pause(max(wait_s, rest_s(time.process_time(), time.monotonic() - began)), parent)


def pause(seconds: float, parent: int) -> None:
    """Shorter where the parent ends meanwhile."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and os.getppid() == parent:
        time.sleep(min(left, POLL_S))


if __name__ == "__main__":
    main(sys.argv[1:])
