"""CES as a whole in one process, on time that is told to pass: managers on one SQLite file, both controllers,
schedulers and an agent on each machine, all with their real code, over a bus that may be unruly.

A process is killed between any two of its steps, and may be started again. What ran when is in ``journal``."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import structlog
import ulid
from founded_cluster import FoundedCluster, join
from journaled_books import JournaledBooks
from journaled_machines import JournaledRuntime, Machine
from manager_world import START
from memory_bus import MemoryBroker
from mortal_database import MortalUnitOfWork
from obliging_solver import ObligingSolver
from processes import NOBODY, Processes
from run_auditor import Journal
from stepped_loop import SteppedLoop
from unruly_bus import PostOffice, UnrulyBus

from ces_common.db import UnitOfWork, WriteTx
from ces_common.natsauth import new_user_key
from ces_common.queuefile import QueueFile
from ces_compute_ctl.service import ComputeController
from ces_core.warm_up import warm_up
from ces_edge_agent.agent import Agent
from ces_edge_agent.checkpoints.service import Checkpoints
from ces_edge_agent.settings import AgentSettings
from ces_manager.broadcast import Broadcast
from ces_manager.clock import Clock
from ces_manager.database import Database
from ces_manager.duties import RELAY, TIME, Duties
from ces_manager.measurements import Measurements
from ces_manager.messaging.controllers import hear_controllers
from ces_manager.messaging.handlers import Messaging
from ces_manager.messaging.peers import Peers
from ces_manager.messaging.relay import Relay
from ces_manager.nodes import removal
from ces_manager.nodes.expiry import expire, observe
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.timeouts import Timeouts
from ces_network_ctl.service import NetworkController
from ces_scheduler import compilation, service, sizing
from ces_scheduler.cycle_input import parameters_of
from ces_scheduler.cycle_run import Placing

TIMEOUTS = Timeouts(unreachable_after_s=12.0)
QUEUE = QueueFile(preemption=10)
HEARTBEAT_S = 5.0
TICK_S = 2.0
RESYNC_S = 60.0
EAGER_S = 5.0
A_WHILE_S = 0.25  # in which what is said is heard and answered
HOP_S = 10.0  # for which all processes are held up at most, where nobody asks for more
MANAGERS = ["manager-1", "manager-2"]
CONTROLLERS = ["compute-ctl", "network-ctl"]
SCHEDULERS = ["scheduler-1", "scheduler-2"]


@cache
def warm_once() -> None:
    """What it makes ready stays so in this process, and garbage is not looked for in it."""
    warm_up(ObligingSolver())
    gc.collect()
    gc.freeze()


async def _nothing(*_: object) -> None:
    """No checkpoint to begin from."""


@cache
def agent_settings() -> AgentSettings:
    """Of any node; to read the environment takes longer than most of what an agent does."""
    return AgentSettings(node="any", heartbeat_s=HEARTBEAT_S, resync_s=RESYNC_S, stop_grace_s=5, measure=False)


class WholeWorld:
    """``nodes``: name -> millicores. ``rates``: name -> how fast that machine's clock runs. ``solvers``: scheduler ->
    what decides for it. ``shared``: one manager at a time has a duty; else each has all of them, as if every one took
    itself for their holder. ``eager``: malleable jobs are resized every few seconds, as if it cost nothing."""

    def __init__(
        self,
        folder: Path,
        cluster: FoundedCluster,
        nodes: Mapping[str, int],
        rates: Mapping[str, float],
        *,
        shared: bool,
        eager: bool = True,
    ) -> None:
        gc.disable()  # until the end, when nearly all of it is garbage
        self.shared, self.resize_s = shared, EAGER_S if eager else service.RESIZE_S
        self.loop = SteppedLoop()
        self.loop.set_exception_handler(self._unforeseen)
        self.post, self.broker, self.journal = PostOffice(), MemoryBroker(), Journal()
        self.errors: list[str] = []  # what ended a process that nobody killed
        self.processes = Processes(self.loop, self.errors.append)
        self._logging = structlog.get_config()
        structlog.configure([self._logged], structlog.make_filtering_bound_logger(logging.ERROR))
        self._undo = ExitStack()
        numbers = count(1)
        ids = ulid.ULIDGenerator(
            lambda: round(self.now().timestamp() * 1000), lambda _: next(numbers).to_bytes(10, "big")
        )
        self._undo.enter_context(patch.object(ulid, "default_generator", ids))
        self._undo.enter_context(patch.object(compilation, "warm_up", lambda _: warm_once()))
        self._undo.enter_context(patch.object(Checkpoints, "restore", _nothing))  # no machine can be asked for any
        if eager:
            self._undo.enter_context(patch.object(sizing, "COST_S", 0.0))
        cluster.restore()
        self.engine, self.uow, self.nodes = cluster.engine, UnitOfWork(cluster.engine), nodes
        self.books = JournaledBooks(cluster.file, self.journal, self.post.proposals, self.loop.time)
        self.solvers = {name: ObligingSolver() for name in SCHEDULERS}
        self.machines: dict[str, Machine] = {}
        self.buses: dict[str, UnrulyBus] = {}  # of the processes that live
        self.agents: dict[str, Agent] = {}
        self.detectors: dict[str, FailureDetector] = {}
        self.databases: dict[str, MortalUnitOfWork] = {}
        self.writers: dict[str, Database] = {}  # of managers
        self.duties: dict[str, Duties] = {}
        self.measurements: dict[str, Measurements] = {}
        self.keys = cluster.keys
        for name in nodes:
            self.machines[name] = Machine(name, folder / name, self.journal, self.loop.time, rates.get(name, 1.0))

    def close(self) -> None:
        for name in list(self.buses):
            self.kill(name)
        self.settle()
        self.processes.kill("")  # what waits for messages that were lost
        self.settle()
        self.loop.close()
        self.books.close()
        self._undo.close()
        structlog.configure(**self._logging)
        gc.enable()

    def _unforeseen(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "handle" in context:  # the rest tells when Python tidies up, of tasks that were killed
            self.errors.append(str(context))

    def _logged(self, logger: object, method: str, event: MutableMapping[str, Any]) -> Any:
        """What a process logs as an error is one: none is foreseen here."""
        self.errors.append(str(event))
        raise structlog.DropEvent

    # Time

    def now(self) -> datetime:
        return START + timedelta(seconds=self.loop.time())

    def settle(self) -> None:
        self.loop.settle()

    def flow(self, seconds: float = A_WHILE_S) -> None:
        """Everything happens at its time."""
        self.loop.flow(seconds)
        self.watch()

    def wait(self, seconds: float, hop_s: float = HOP_S) -> None:
        """Time passes in hops, between which processes do what has become due."""
        while seconds > 0:
            hop = min(seconds, hop_s)
            seconds -= hop
            self.loop.leap(max(hop - A_WHILE_S, 0))
            self.watch()
            self.flow()

    def watch(self) -> None:
        for machine in self.machines.values():
            machine.watch()

    # Processes

    def start(self, name: str) -> None:
        """Start a process, unless it runs."""
        if name in self.buses:
            return
        bus = self.buses[name] = UnrulyBus(self.broker, self.post, name, self.loop)
        if name in MANAGERS:
            work = self._manager(name, bus)
        elif name in self.machines:
            work = self._agent(name, bus)
        elif name in SCHEDULERS:
            work = self._scheduler(name, bus)
        else:
            work = self._controller(name, bus)
        self.processes.start(name, work)
        self.settle()

    def kill(self, name: str) -> None:
        bus = self.buses.pop(name, None)
        if bus is None:
            return
        self.processes.kill(name)
        self.loop.create_task(bus.kill(), context=NOBODY.copy())
        parts: list[dict[str, Any]] = [
            self.agents,
            self.detectors,
            self.databases,
            self.writers,
            self.duties,
            self.measurements,
        ]
        for part in parts:
            part.pop(name, None)

    def heal(self, name: str) -> None:
        """The process's messages pass again. What was lost is not sent again, of which it is told."""
        lost = any(self.post.mode(name, way) == "cut" for way in ("out", "in"))
        self.post.open(name)
        if lost and name in self.buses:
            self.buses[name].reconnected()

    async def _manager(self, name: str, bus: UnrulyBus) -> None:
        uow = self.databases[name] = MortalUnitOfWork(self.engine, self.books.note, lambda: self.kill(name))
        clock = Clock(self.now, self.loop.time)
        database, measurements, broadcast = Database(uow, clock), Measurements(), Broadcast()
        detector = self.detectors[name] = FailureDetector(clock.steady)
        duties, peers = Duties(database, name), Peers(bus, name, clock.steady)
        self.writers[name], self.duties[name], self.measurements[name] = database, duties, measurements

        def does(duty: str) -> bool:
            return not self.shared or duties.holds(duty)

        relay = Relay(uow, bus, lambda: does(RELAY))
        for hint in (relay.hint.set, peers.hint.set):
            database.on_commit(hint)
        duties.on_taken(relay.hint.set)
        messaging = Messaging(database, bus, TIMEOUTS, detector, measurements, broadcast, QUEUE, peers.share)

        async def expire_repeatedly() -> None:
            while True:
                if not does(TIME):
                    await database.in_writer(lambda: observe(uow, TIMEOUTS, detector))
                elif await database.in_writer(lambda: expire(uow, TIMEOUTS, detector, clock)):
                    database.committed()
                await asyncio.sleep(TICK_S)

        await bus.connect()
        await hear_controllers(bus, detector)
        await peers.start(relay.hint.set, lambda beat: measurements.heard(beat, clock.now()))
        await messaging.start()
        more = [*([duties.run()] if self.shared else []), *self.also(database, measurements, duties)]
        await asyncio.gather(relay.run(), peers.run(), expire_repeatedly(), *more)

    def also(self, database: Database, measurements: Measurements, duties: Duties) -> Sequence[Awaitable[None]]:
        """What else a manager does."""
        return ()

    async def _agent(self, name: str, bus: UnrulyBus) -> None:
        machine = self.machines[name]
        machine.folder.mkdir(exist_ok=True)
        settings = agent_settings().model_copy(update={"node": name, "state_dir": machine.folder})
        agent = Agent(settings, bus, self.runtime(machine), machine.network, machine.clocks(), new_user_key().seed)
        self.agents[name] = agent
        await asyncio.gather(agent.reconcile(), agent.communicate())

    async def _controller(self, name: str, bus: UnrulyBus) -> None:
        await bus.connect()
        if name == "compute-ctl":
            await ComputeController(bus, RESYNC_S).run()
        else:
            await NetworkController(bus, RESYNC_S, self.loop.time).run()

    async def _scheduler(self, name: str, bus: UnrulyBus) -> None:
        await bus.connect()
        placing = Placing(self.solvers[name], parameters_of(QUEUE), seconds=self.loop.time)
        scheduler = service.Scheduler(bus, placing, RESYNC_S, self.loop.time, now=self.now, resize_s=self.resize_s)
        await scheduler.run()

    def runtime(self, machine: Machine) -> JournaledRuntime:
        return JournaledRuntime(machine)

    # What users and operators do, at any manager

    def write(self, act: Callable[[WriteTx], Any]) -> Any:
        with self.uow.write(self.now()) as tx:
            result = act(tx)
        self.books.note()
        return result

    def join(self, name: str) -> None:
        self.keys += 1
        self.write(lambda tx: join(tx, name, self.nodes[name], self.keys - 1))

    def replace(self, name: str) -> None:
        """Another machine takes the node's place, and knows nothing. The one before goes on as it will, without its
        agent."""
        self.kill(name)
        former = self.machines.pop(name)
        self.machines[f"{name} before {self.keys}"] = former
        folder = former.folder.with_name(f"{name}-{self.keys}")
        self.machines[name] = Machine(name, folder, self.journal, self.loop.time)
        self.machines[name].reboot()  # whose boot has another name

    def wipe(self, name: str) -> None:
        """The machine loses what its agent wrote down, and the records of its workers, none of which is alive."""
        machine = self.machines[name]
        machine.reboot()
        machine.workers.clear()
        shutil.rmtree(machine.folder, ignore_errors=True)

    def forget(self, manager: str, node: str) -> None:
        detector = self.detectors[manager]
        age_s = detector.nodes.age(node, detector.hearing())
        self.write(lambda tx: removal.forget_node(tx, TIMEOUTS, age_s, node))
