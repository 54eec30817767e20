"""What may befall CES as a whole, as rules in any order: besides faults, users and operators do as they like, links fail,
single messages come late or twice, and a manager dies in the middle of what it does."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from whole_world import MANAGERS
from world_faults import Faults, pick

from ces_manager.errors import Conflict
from ces_manager.jobs import commands
from ces_manager.nodes import operations

OF_JOBS = ["cancel_job", "cancel_job", "pause_job", "resume_job"]
OF_NODES = ["drain", "cordon", "uncordon", "uncordon", "forget"]


class Actors(Faults):
    @rule(which=pick, what=st.sampled_from([*OF_JOBS, *OF_NODES]))
    def command(self, which: int, what: str) -> None:
        """A forgotten node joins again, with nothing that it knew before."""
        job, state = self.job(which) or ("", "")
        node = self.node(which)
        if what in OF_JOBS:
            if job and (what == "cancel_job" or state in ("running", "paused")):
                self.world.write(lambda tx: getattr(commands, what)(tx, job))
        elif not self.joined(node):
            self.world.wipe(node)
            self.world.join(node)
            self.come_back(node)
        elif what == "forget":
            self.forget(node)
        else:
            self.world.write(lambda tx: getattr(operations, what)(tx, node))
        self.world.flow(1.0)

    def forget(self, node: str) -> None:
        """Where jobs outlive any silence, the operator first makes sure that the machine is gone."""
        manager = next((name for name in MANAGERS if name in self.world.detectors), None)
        if manager is None:
            return
        if self.world.books.ask(_KEPT, node):
            self.world.kill(node)
            self.world.machines[node].reboot()
        with suppress(Conflict):
            self.world.forget(manager, node)
            self.world.kill(node)

    @rule(which=pick, what=st.sampled_from(["ends", "fails", "is pruned", "link"]), up=st.booleans())
    def mishap(self, which: int, what: str, up: bool) -> None:
        """A program ends, and somebody may remove what is left of it; or a link fails, or is there again."""
        machines = list(self.world.machines.values())
        running = [(at, each) for at in machines for each in at.workers.values() if each.status.state == "running"]
        if what == "link":
            machine = machines[which % len(machines)]
            machine.link(machines[which - 1].name, up=up)
        elif running:
            machine, worker = running[which % len(running)]
            machine.end(worker, 0 if what == "ends" else 1)
            if what == "is pruned":
                machine.prune()
        self.world.flow(1.0)

    @precondition(lambda self: self.world.post.held)
    @rule(which=st.integers(0, 30), what=st.sampled_from(["deliver", "deliver", "again", "drop"]))
    def letter(self, which: int, what: str) -> None:
        post = self.world.post
        letter = post.held[which % len(post.held)]
        if what == "drop":
            post.drop(letter)
        else:
            post.deliver(letter, again=what == "again")
        self.world.flow()

    @rule(manager=st.sampled_from(MANAGERS), commits=st.integers(1, 4))
    def doom(self, manager: str, commits: int) -> None:
        """It dies after so many commits, before it can tell anybody."""
        if manager in self.world.databases:
            self.world.databases[manager].lives = commits


_KEPT = "SELECT 1 FROM allocations JOIN jobs ON jobs.id = job WHERE node = ? AND disconnect = 'keep'"
