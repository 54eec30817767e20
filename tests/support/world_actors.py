"""What may befall CES as a whole, in any order: besides faults, users and operators do as they like, links
fail, single messages come late or twice, and a manager dies in the middle of what it does."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule
from whole_world import HOP_S, MANAGERS
from world_faults import BEYOND_S, FOR_LONG, LANES, Faults, gang, pick

from ces_manager.errors import Conflict
from ces_manager.jobs import commands
from ces_manager.nodes import operations

OF_JOBS = ["cancel_job", "cancel_job", "pause_job", "resume_job"]
OF_NODES = ["drain", "cordon", "uncordon", "uncordon", "forget"]
new = st.lists(gang, max_size=1)  # a job that comes just before
who = st.sampled_from(["site", "agent", "controllers", "controller", "manager", "scheduler"])
gone = st.sampled_from([BEYOND_S, BEYOND_S, 35, 5, None])  # seconds; None: until it returns by another event
yes = st.booleans()
Event = tuple[str, dict[str, Any]]


def weighted(*events: tuple[int, str, dict[str, st.SearchStrategy[Any]]]) -> st.SearchStrategy[Event]:
    """An event is the name of a method below, or of one of the faults, and what it is called with. Drawn by weight:
    with a rule for each, hypothesis would leave most of them out of most histories."""
    drawn = {name: st.tuples(st.just(name), st.fixed_dictionaries(args)) for _, name, args in events}
    return st.sampled_from([name for weight, name, _ in events for _ in range(weight)]).flatmap(drawn.__getitem__)


EVENTS = weighted(
    (4, "lose", {"job": gang, "who": st.sampled_from(["site", "agent"]), "which": pick,
                 "how": st.sampled_from(["kill", "cut", "held", "reboot"]), "seconds": gone, "odd": yes}),
    (2, "cut_off", {"job": new, "who": who, "which": pick, "way": st.sampled_from(["both", "out", "in"]),
                    "mode": st.sampled_from(["cut", "held"]), "seconds": gone}),
    (2, "away", {"job": new, "who": who, "which": pick, "reboot": yes, "seconds": gone, "last_first": yes,
              "prune": yes}),
    (2, "outbid", {"job": gang, "seconds": st.sampled_from([10, 35, 0]),
                   "change": st.sampled_from(["cordon", "silence", "nothing"])}),
    (1, "stall", {"lane": st.sampled_from(LANES), "jobs": new, "seconds": st.sampled_from([10, 35, 0])}),
    (1, "return_", {"who": who, "which": pick}),
    (2, "pass_time", {"seconds": st.sampled_from([1, 15, *FOR_LONG]),
                      "hop_s": st.sampled_from([HOP_S, HOP_S, BEYOND_S])}),
    (3, "command", {"which": pick, "what": st.sampled_from([*OF_JOBS, *OF_NODES])}),
    (3, "mishap", {"which": pick, "what": st.sampled_from(["is pruned", "fails", "ends", "link", "doom"]),
                   "count": st.integers(1, 4)}),
    (1, "letter", {"which": st.integers(0, 30), "what": st.sampled_from(["deliver", "deliver", "again", "drop"])}),
)  # fmt: skip


class Actors(Faults):
    @rule(event=EVENTS)
    def befalls(self, event: Event) -> None:
        name, arguments = event
        getattr(self, name)(**arguments)

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

    def mishap(self, which: int, what: str, count: int) -> None:
        """A program ends, and somebody may remove what is left of such; a link fails, or is there again; or a manager
        dies after so many commits, before it can tell anybody."""
        machines = list(self.world.machines.values())
        running = [(at, each) for at in machines for each in at.workers.values() if each.status.state == "running"]
        if what == "link":
            machine = machines[which % len(machines)]
            machine.link(machines[which - 1].name, up=count == 1)
        elif what == "doom":
            for database in list(self.world.databases.values())[: which + 1]:
                database.lives = count
        elif running:
            machine, worker = running[which % len(running)]
            machine.end(worker, 0 if what == "ends" else 1)
        if what == "is pruned":
            self.prune()
        self.world.flow(1.0)

    def letter(self, which: int, what: str) -> None:
        post = self.world.post
        if not post.held:
            return
        letter = post.held[which % len(post.held)]
        if what == "drop":
            post.drop(letter)
        else:
            post.deliver(letter, again=what == "again")
        self.world.flow()


_KEPT = "SELECT 1 FROM allocations JOIN jobs ON jobs.id = job WHERE node = ? AND disconnect = 'keep'"
