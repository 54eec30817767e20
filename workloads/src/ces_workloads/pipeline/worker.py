"""One task of a pipeline: it sends requests at its rate, works on those that come, and hands them on."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from ces_workloads.peers import Membership
from ces_workloads.pipeline.burn import burner
from ces_workloads.pipeline.connections import Outgoing, listen
from ces_workloads.pipeline.frames import END, Frame
from ces_workloads.pipeline.latencies import Latencies
from ces_workloads.pipeline.ways import Duties, Way, passes

REPORT_S = 1.0
FIRST_S = 5.0
"""After which a first request without an answer is sent again: its way may not be complete yet."""
LAST_S = 5.0
"""How long a task that ends waits for what is on its way."""
FIRST = 0
"""Number of the request that shows that a way is complete; it is not counted."""


def _now_ms() -> float:
    return time.monotonic() * 1000


class Worker:
    """Runs until each sender whose requests come here has ended; a sender ends after ``seconds``, None for never.
    ``tell``: is called with what is told as progress; ``tell_answers``: with the answers since it was called last.
    ``again``: seconds after which a request without an answer is asked again, None for never."""

    def __init__(
        self,
        duties: Duties,
        members: Membership,
        tell: Callable[[dict[str, Any]], None],
        seconds: float | None,
        seed: int,
        *,
        again: float | None = None,
        tell_answers: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self._duties, self._members, self._tell, self._seconds, self._seed = duties, members, tell, seconds, seed
        self._again, self._tell_answers = again, tell_answers
        self._burn = burner(duties.work_us, duties.work_class)
        self._outgoing = Outgoing({peer.task: peer for peer in members.peers})
        self._todo: queue.Queue[Frame] = queue.Queue()
        self._lock = threading.Lock()
        self._complete = {way.name: threading.Event() for way in duties.sends}
        self._latencies = {way.name: Latencies(way.deadline_ms) for way in duties.sends if way.returns}
        self._ended: set[str] = set()
        self._served = 0

    def run(self) -> dict[str, Any]:
        """Returns the last report."""
        server = listen(self._members.address, self._members.port, self._heard)
        threading.Thread(target=self._work, daemon=True).start()
        for way in self._duties.sends:
            threading.Thread(target=self._send, args=(way,), daemon=True).start()
        until: float | None = None
        while not self._all_ended():
            time.sleep(REPORT_S)
            self._tell(self.report())
            self._ask_again()
            self._say_answers()
            if (
                self._seconds is None
                or not self._complete
                or not all(each.is_set() for each in self._complete.values())
            ):
                continue
            until = time.monotonic() + self._seconds if until is None else until
            if time.monotonic() >= until:
                break
        self._end()
        self._say_answers()
        server.close()
        return self.report()

    def report(self) -> dict[str, Any]:
        with self._lock:
            for each in self._latencies.values():
                each.give_up(_now_ms())
            told = {name: each.report() for name, each in self._latencies.items()}
            return ({"requests": told} if told else {}) | {"served": self._served}

    def _ask_again(self) -> None:
        if self._again is None:
            return
        for name, each in self._latencies.items():
            with self._lock:
                numbers = each.again(_now_ms(), self._again * 1000)
            for number in numbers:
                self._todo.put(Frame(name, 0, number))

    def _say_answers(self) -> None:
        if self._tell_answers is None:
            return
        with self._lock:
            fresh = {name: told for name, each in self._latencies.items() if (told := each.fresh())}
        if fresh:
            self._tell_answers(fresh)

    def _end(self) -> None:
        """Send no more; what is on its way may still arrive."""
        if self._duties.sends:
            self._todo.put(Frame(self._duties.task, END))
        last = time.monotonic() + LAST_S
        while time.monotonic() < last and (self._todo.unfinished_tasks or self._waiting() or not self._all_ended()):
            time.sleep(0.02)
        self._outgoing.flush(max(0.0, last - time.monotonic()))

    def _waiting(self) -> int:
        with self._lock:
            return sum(each.waiting for each in self._latencies.values())

    def _all_ended(self) -> bool:
        return self._duties.origins <= self._ended

    def _send(self, way: Way) -> None:
        """Requests at random, as from many users that know nothing of each other (a Poisson process): the rate is kept
        whatever answers take. They begin once a first one has come back."""
        complete, rng = self._complete[way.name], random.Random(f"{self._seed} {way.name}")
        while way.returns and not complete.is_set():
            self._todo.put(Frame(way.name, 0, FIRST))
            complete.wait(FIRST_S)
        complete.set()
        number, at = FIRST, time.monotonic()
        while self._duties.task not in self._ended:
            at += rng.expovariate(way.rate)
            time.sleep(max(0.0, at - time.monotonic()))
            number += 1
            if way.returns:
                with self._lock:
                    self._latencies[way.name].asked(number, _now_ms())
            self._todo.put(Frame(way.name, 0, number))

    def _heard(self, frame: Frame) -> None:
        if frame.position == END:
            self._todo.put(frame)
            return
        way = self._duties.ways.get(frame.name)
        if way is None or not passes(way, frame.position, self._duties.task):
            return  # of no way that leads here
        if way.works_at(frame.position):
            self._todo.put(frame)
        elif frame.number == FIRST:
            self._complete[way.name].set()
        else:
            with self._lock:
                self._latencies[way.name].answered(frame.number, _now_ms())

    def _work(self) -> None:
        """One after the other: a task has one thread."""
        while True:
            frame = self._todo.get()
            if frame.position == END:
                self._pass_on_end(frame)
            else:
                self._serve(frame)
            self._todo.task_done()

    def _serve(self, frame: Frame) -> None:
        way, position = self._duties.ways[frame.name], frame.position
        self._burn()
        self._served += position > 0 and frame.number != FIRST
        if position < len(way.steps) - 1:
            onwards = Frame(way.name, position + 1, frame.number, way.messages[position])
            self._outgoing.put(way.steps[position + 1], onwards)

    def _pass_on_end(self, frame: Frame) -> None:
        """Behind all that came before it."""
        if frame.name in self._duties.origins and frame.name not in self._ended:
            self._ended.add(frame.name)
            for task in self._duties.after(frame.name):
                self._outgoing.put(task, frame)
