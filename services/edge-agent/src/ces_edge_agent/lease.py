"""The node's lease: how long its workers may run without an answer from the manager. The clocks are passed in."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import structlog
from prometheus_client import Counter, Gauge

from ces_edge_agent.deadline import Deadline, deadline_file, make_deadline_file, read_deadline, write_deadline
from ces_edge_agent.files import write_atomically

log = structlog.get_logger()
Clock = Callable[[], float]
LEFT = Gauge("ces_agent_lease_remaining_seconds", "How long workers may still run without word from the manager")
RENEWED = Counter("ces_agent_leases_renewed_total", "Grants of the manager that made the lease last longer")
KEPT_EVERY = 1 / 3  # of the lease


@dataclass(frozen=True)
class Clocks:
    """``steady`` counts through suspend but starts again at each boot; ``boot`` names the boot; ``wall`` is the time of
    day, which decides about a lease after a reboot. All in seconds. ``machine``: ``boot`` as no other machine has it;
    empty where there is no such name."""

    steady: Clock
    wall: Clock
    boot: str
    machine: str = ""


def machine_clocks() -> Clocks:
    """The machine's own clocks; ``steady`` counts through suspend where the system has such a clock."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    name = boot.read_text().strip() if boot.exists() else str(int(psutil.boot_time()))
    if hasattr(time, "CLOCK_BOOTTIME"):
        steady = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
        return Clocks(steady=steady, wall=time.time, boot=name, machine=name if boot.exists() else "")
    return Clocks(steady=time.monotonic, wall=time.time, boot=name)


class Lease:
    """Does not hold before the first grant. Its end is written to the deadline file at each grant, for shims and
    sandboxes that watch workers without the agent (see ``deadline``), and for an agent that starts again. What a reboot
    needs besides is forced onto the disk, which wears flash, and so is written once in a third of the lease: a reboot
    may find an earlier end."""

    def __init__(self, state_dir: Path, clocks: Clocks) -> None:
        self._path, self._deadline, self._clocks = state_dir / "lease.json", deadline_file(state_dir), clocks
        self._until = self._kept = self._load()
        deadline = read_deadline(self._deadline)
        if deadline is not None and deadline.boot == clocks.boot:
            self._until = max(self._until, deadline.at)
        make_deadline_file(self._deadline)
        self._write_deadline()
        LEFT.set_function(lambda: max(self.remaining(), 0.0))

    def holds(self) -> bool:
        return self._clocks.steady() < self._until

    def renew(self, sent: float, lease_s: float) -> None:
        """Extend the lease to ``lease_s`` after the heartbeat was sent (on the steady clock), so that it always ends
        here before it ends at the manager."""
        until = sent + lease_s
        if until > self._until:
            self._until = until
            RENEWED.inc()
            self._write_deadline()
            if until - self._kept < lease_s * KEPT_EVERY:
                return
            now = self._clocks.wall()
            wall = now + (until - self._clocks.steady())
            kept = {"boot": self._clocks.boot, "steady": until, "wall": wall, "written": now}
            try:
                write_atomically(self._path, json.dumps(kept))
                self._kept = until
            except OSError as error:  # a restart then finds an earlier end, which is safe
                log.warning("the lease could not be written down", error=str(error))

    def give_up(self) -> None:
        """Another machine holds this node's lease: here nothing may run, not even what outlives a lease."""
        self._until = self._kept = -math.inf
        self._write_deadline()
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("a restart would take up a lease that was given up", error=str(error))

    def _write_deadline(self) -> None:
        try:
            write_deadline(self._deadline, Deadline(self._clocks.boot, max(self._until, 0.0)))
        except OSError as error:
            log.error("workers will end by an earlier lease: it could not be written down", error=str(error))

    def remaining(self) -> float:
        """Seconds left; negative once the lease has run out, without end where it was given up."""
        return self._until - self._clocks.steady()

    def _load(self) -> float:
        try:
            kept = json.loads(self._path.read_text())
            if kept["boot"] == self._clocks.boot:
                return float(kept["steady"])
            now = self._clocks.wall()
            if now < float(kept["written"]):  # the time of day was lost with the power: how much has passed is unknown
                return self._clocks.steady()
            return self._clocks.steady() + float(kept["wall"]) - now
        except (OSError, ValueError, KeyError, TypeError):
            return self._clocks.steady()
