"""Long random histories: hypothesis finds short ways to break things; these are longer, and mostly full of running
jobs."""

from __future__ import annotations

import random
from collections.abc import Callable

from history_actors import AMOUNTS, DISCONNECT, HOWS, MARKS, NODES, PRIORITIES, RATES, SCOPES, YIELDS, Actors


def play(machine: Actors, seed: int, after_each: Callable[[], None], steps: int = 150) -> None:
    """Build the world and let its actors act, as often as is likely."""
    dice = random.Random(seed)
    machine.build()

    def some_nodes(most: int) -> list[str]:
        return dice.sample(NODES, dice.randint(1, most))

    def gpus() -> int:
        return dice.choice([0, 1, 1, 2])

    acts: list[tuple[int, Callable[[], None]]] = [
        (
            8,
            lambda: machine.submit(
                dice.randint(1, 3),
                dice.choice(SCOPES),
                dice.choice(DISCONNECT),
                dice.randint(0, 3),
                dice.choice(PRIORITIES),
                dice.choice(YIELDS),
                gpus(),
            ),
        ),
        (8, lambda: machine.preempt(dice.randint(0, 4), dice.sample(range(5), dice.randint(1, 2)), dice.choice(HOWS))),
        (9, lambda: machine.make_room(dice.randint(0, 4), dice.choice(HOWS))),
        (9, lambda: machine.go_on(dice.randint(0, 4), dice.choice(RATES))),
        (3, lambda: machine.submit_malleable(dice.randint(1, 2), dice.choice(DISCONNECT), dice.randint(0, 3), gpus())),
        (8, lambda: machine.resize(dice.randint(0, 4), dice.randint(1, 5), some_nodes(3), dice.choice(RATES))),
        (9, lambda: machine.change_cpu(dice.randint(0, 4), dice.choice(AMOUNTS))),
        (2, lambda: machine.cancel(dice.randint(0, 4))),
        (3, lambda: machine.pause_or_resume(dice.randint(0, 4), dice.random() < 0.5)),
        (3, lambda: machine.mark(dice.choice(NODES), dice.choice(MARKS))),
        (1, lambda: machine.rewire(dice.choice(["25Mbit", "100Mbit"]), dice.choice([NODES, NODES, NODES[:2]]))),
        (6, lambda: machine.plan(dice.randint(0, 4), some_nodes(3), dice.choice(RATES))),
        (6, lambda: machine.network(dice.randint(0, 4), dice.random() < 0.5, int(dice.random() < 0.1))),
        (8, lambda: machine.start(dice.randint(0, 4), some_nodes(3), dice.choice(RATES))),
        (10, lambda: machine.obey(dice.choice(NODES))),
        (8, lambda: machine.exit_one(dice.choice(NODES), dice.choice([0, 0, 1]))),
        (10, lambda: machine.speak(dice.choice(NODES))),
        (12, lambda: machine.arrive(dice.choice(NODES), dice.random() < 0.5, dice.random() < 0.3)),
        (8, lambda: machine.pass_time(dice.choice([1, 5, 15]), set(some_nodes(1)))),
        (2, lambda: machine.pass_long_time(dice.choice([45, 200]), set(some_nodes(1)))),
        (1, machine.all_converge),
    ]
    weights, calls = zip(*acts, strict=True)
    for call in dice.choices(calls, weights, k=steps):
        call()
        after_each()
    machine.teardown()


def play_moves(machine: Actors, seed: int, after_each: Callable[[], None], steps: int = 150) -> None:
    """The same, mostly of jobs whose tasks are moved one by one."""
    dice = random.Random(seed)
    machine.build()
    for job in machine.world.snapshot().jobs:
        machine.world.cancel(job.id)

    def one() -> str:
        return dice.choice(NODES)

    def submit() -> None:
        machine.submit(dice.randint(1, 2), "task", dice.choice(DISCONNECT), dice.randint(0, 3), 10, "suspend", 0)

    acts: list[tuple[int, Callable[[], None]]] = [
        (4, submit),
        (8, lambda: machine.start(dice.randint(0, 4), [one(), one()], RATES[0])),
        (24, lambda: machine.move(dice.randint(0, 4), dice.randint(0, 1), one(), RATES[0])),
        (20, lambda: machine.lay(dice.randint(0, 4))),
        (14, lambda: machine.obey(one())),
        (4, lambda: machine.exit_one(one(), dice.choice([0, 1, 1, 1]))),
        (12, lambda: machine.speak(one())),
        (22, lambda: machine.arrive(one(), dice.random() < 0.7, dice.random() < 0.3)),
        (4, lambda: machine.pass_time(dice.choice([1, 5, 15]), {one()})),
        (1, lambda: machine.pass_long_time(dice.choice([45, 200, 700]), {one()})),
        (3, lambda: machine.mark(one(), dice.choice([*MARKS, "uncordon", "uncordon"]))),
        (2, lambda: machine.pause_or_resume(dice.randint(0, 4), dice.random() < 0.3)),
        (2, machine.all_converge),
        (5, lambda: machine.forget_or_join(one())),
        (2, lambda: machine.cut(one(), one())),
        (1, lambda: machine.cancel(dice.randint(0, 4))),
        (1, lambda: machine.make_room(dice.randint(0, 4), dice.choice(HOWS))),
        (1, lambda: machine.revise(dice.randint(0, 4), 0, RATES[0], one())),
    ]
    weights, calls = zip(*acts, strict=True)
    for call in dice.choices(calls, weights, k=steps):
        call()
        after_each()
    machine.teardown()
