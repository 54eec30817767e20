"""Whose turn it is to write."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from ces_common.db.turns import WriteTurns

PATIENCE_S = 60.0


def test_urgent_writers_go_first_and_one_at_a_time() -> None:
    turns, order, inside = WriteTurns(PATIENCE_S), list[str](), threading.Lock()
    waiting = threading.Barrier(5)

    def write(name: str, urgent: bool) -> None:
        waiting.wait(PATIENCE_S)
        with turns.turn(urgent=urgent):
            assert inside.acquire(blocking=False)
            order.append(name)
            inside.release()

    with ThreadPoolExecutor(4) as threads:
        with turns.turn(urgent=False):
            writing: list[Future[None]] = [
                threads.submit(write, name, name == "lease") for name in ("user", "user", "lease", "user")
            ]
            waiting.wait(PATIENCE_S)
            while turns.waiting() < 4:
                threading.Event().wait(0.001)
        for each in writing:
            each.result(PATIENCE_S)
    assert order == ["lease", "user", "user", "user"]


def test_whoever_has_waited_long_enough_is_left_to_the_database() -> None:
    turns = WriteTurns(0.01)
    with turns.turn(urgent=False):
        with turns.turn(urgent=True):
            pass
        with turns.turn(urgent=False):
            pass
    with turns.turn(urgent=False):
        pass
