"""The policy that decides, where it evolves: the version that the folder says is live, taken up between two looks at
the queue; its decisions on record; and the way back if nobody watches it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from ces_common.messages.records import JobRecord
from ces_core.evolution.decision_log import Decided, DecisionLog, DecisionLogError, count_since
from ces_core.evolution.folder import STATE, EvolutionFolder, FolderError, basis_of
from ces_core.evolution.gate import PROBATION, must_return
from ces_core.evolution.pairing import pairs_of
from ces_core.evolution.state import BASE, State, StateError
from ces_core.model.errors import PolicyError
from ces_core.solver import Learned
from ces_scheduler.cycle_run import CycleRun, Placing
from ces_scheduler.decision import Decision
from ces_scheduler.solver_choice import Choice, refusal

log = structlog.get_logger()
Stamp = tuple[int, int, int]
NO_FILE: Stamp = (0, 0, 0)


@dataclass(frozen=True)
class Setup:
    """``asked``: the solver of the name that was asked for; ``base``: what decides where no version is live, and
    ``policy`` the file that it was given. ``log_bytes``: bound of the log. ``returns``: whether a version is taken back
    without being asked."""

    folder: EvolutionFolder
    asked: Learned
    base: Choice
    policy: Path | None
    log_bytes: int
    returns: bool


class LivePolicy:
    """Everything here reads or writes files, and is called in a thread, one call at a time."""

    def __init__(self, setup: Setup) -> None:
        self._setup, self._folder = setup, setup.folder
        self._log = DecisionLog(setup.folder.log, setup.log_bytes)
        self._stamp: Stamp | None = None
        self._state = State()
        self._choice = setup.base
        self._since = 0
        self._settled = False  # whether the live version has been judged after its first decisions
        self._silent = False  # whether it was said that decisions cannot be logged

    @property
    def folder(self) -> EvolutionFolder:
        return self._folder

    def begin(self) -> None:
        """Say in the folder what the scheduler was set up with. Raises FolderError and OSError."""
        basis = basis_of(self._setup.asked.name, self._setup.policy)
        self._folder.change(lambda state: state.model_copy(update={"basis": basis}))

    def placing(self, placing: Placing) -> Placing:
        """With the solver of the live version. A version that cannot be used leaves the deciding to the base, and a
        state that cannot be read everything as it is."""
        try:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._take_up(self._folder.state())
                self._stamp = stamp
        except (FolderError, OSError) as error:
            log.error("the state of the evolving policy cannot be read", reason=str(error))
        if placing.solver is self._choice.solver:
            return placing
        return replace(placing, solver=self._choice.solver, fallback=self._choice.fallback)

    def decided(self, run: CycleRun, at_s: float) -> None:
        """Log what a cycle has decided, and take a version back of which too little is known after its first
        decisions, or that is worse. What cannot be written is left out: decisions never wait for it."""
        self._logged(run, at_s)
        self._since += len(run.starts)
        if self._since >= PROBATION and not self._settled and self._setup.returns and self._state.former is not None:
            self._watch(at_s)

    def close(self) -> None:
        self._log.close()

    def _logged(self, run: CycleRun, at_s: float) -> None:
        for name, decision in run.starts.items():
            try:
                self._log.append(decided_of(run.started[name], decision, at_s))
            except (OSError, ValueError) as error:
                if not self._silent:
                    log.error("decisions cannot be logged", folder=str(self._log.folder), error=str(error))
                self._silent = True
            else:
                self._silent = False

    def _take_up(self, state: State) -> None:
        before, self._state = self._state, state
        if self._stamp is None or state.promoted_s != before.promoted_s:
            self._since, self._settled = self._counted(state), False
        if self._stamp is not None and state.live == before.live:
            return
        self._choice = self._of(state.live)
        log.info("a policy is live", version=state.live, former=state.former, solver=self._choice.solver.name)

    def _of(self, version: str) -> Choice:
        if version == BASE:
            return self._setup.base
        asked = self._setup.asked
        try:
            return Choice(asked.using(self._folder.policy(version)))
        except (FolderError, PolicyError) as error:
            log.error("a version is refused", version=version, deciding=self._setup.base.solver.name, reason=str(error))
            said = PolicyError(f"version {version}: {error}")
            return Choice(self._setup.base.solver, refusal(asked, said))

    def _counted(self, state: State) -> int:
        """Decisions since the promotion, also before this process."""
        if state.promoted_s is None or state.former is None:
            return 0
        try:
            return count_since(self._log.folder, state.promoted_s)
        except (DecisionLogError, OSError) as error:
            log.error("decisions since the promotion cannot be counted", reason=str(error))
            return 0

    def _watch(self, at_s: float) -> None:
        """Take the live version back if it has not shown by now that it is better. The shadow does so earlier; this is
        for one that is behind, or gone."""
        state = self._state
        if state.frozen:
            return
        try:
            pairs = pairs_of(self._folder.pairs(self._folder.watch(state)))
            why = must_return(pairs, self._since, frozen=False)
            self._settled = True
            if why is not None:
                self._folder.change(lambda now: _returned(now, state, at_s, why))
                log.warning("a policy is taken back", version=state.live, former=state.former, reason=why)
        except (FolderError, StateError, OSError) as error:
            log.error("the live policy cannot be judged", version=state.live, reason=str(error))

    def _stamp_now(self) -> Stamp:
        try:
            stat = (self._folder.path / STATE).stat()
        except FileNotFoundError:
            return NO_FILE
        return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _returned(now: State, judged: State, at_s: float, why: str) -> State:
    """Unless something else has become live meanwhile."""
    return now if (now.live, now.former) != (judged.live, judged.former) else now.rolled_back(at_s, why)


def decided_of(record: JobRecord, decision: Decision, at_s: float) -> Decided:
    """A decision as it is logged."""
    return Decided(
        name=f"{record.id}.{record.attempt}",
        at_s=at_s,
        problem=decision.problem,
        seed=decision.seed,
        time_limit_s=decision.time_limit_s,
        solver=decision.solver,
        policy=None if decision.policy is None else decision.policy.version,
        fragmentation_aware=decision.fragmentation_aware,
        composite=decision.metrics.get("objective", decision.metrics["composite"]),
        ms=decision.decision_ms,
        assignments=decision.assignments,
        flows=[flow.model_dump() for flow in decision.flows],
    )
