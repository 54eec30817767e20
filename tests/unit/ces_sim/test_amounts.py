"""The slotted world: durations by hand, what holds in every world, and TapFinger's published figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amounts_world import IMAGE, LANGUAGE, begun, small_setting

from ces_core.amounts.choice import no_choice
from ces_core.amounts.rules import PUBLISHED, RULES, decide
from ces_core.amounts.settings import SETTINGS, SLOTS
from ces_core.amounts.speeds import speeds
from ces_core.amounts.thrift import lengths
from ces_experiments.amounts.published import PUBLISHED_JCT
from ces_sim.amounts import Worlds, draw_tasks, place, place_chosen, play, walk
from ces_sim.profiles import read_profiles, speeds_of

SYNTHETIC = SETTINGS["synthetic"]


def test_a_task_that_is_placed_at_once_is_done_after_as_many_slots_as_it_takes() -> None:
    world, tasks, state = begun(small_setting((16, 16)), [IMAGE, LANGUAGE])
    place(state, 0, 0, 0, 2, 1)
    place(state, 0, 0, 1, 2, 8)
    assert state.free[0, 0].tolist() == [12, 7]
    for done in ([0, 0], [0, 0], [0, 3], [4, 3]):
        walk(world, tasks, state, 0)
        assert state.duration[0].tolist() == done
    assert state.free[0, 0].tolist() == [16, 16]
    assert state.ran[0].tolist() == [4, 3]


def test_changed_amounts_cost_half_of_a_slot() -> None:
    world, tasks, state = begun(small_setting((16, 16)), [IMAGE])
    place(state, 0, 0, 0, 2, 1)
    walk(world, tasks, state, 0)
    state.amounts[0, 0] = (3, 1)
    walk(world, tasks, state, 0)
    assert state.progress[0, 0] == pytest.approx(0.25 + 0.125)
    walk(world, tasks, state, 0)
    assert state.progress[0, 0] == pytest.approx(0.25 + 0.125 + 0.25)


def test_who_finds_no_pending_slot_waits_in_the_queue_and_moves_up_in_order() -> None:
    world, tasks, state = begun(small_setting((32, 32), (32, 32)), [IMAGE] * 13)
    assert state.pending[0, 0].tolist() == list(range(SLOTS))
    assert state.queue[0, 0, : state.queued[0, 0]].tolist() == [10, 11, 12]
    place(state, 0, 0, 3, 2, 1)
    state.pending[0, 1, 0] = 11  # as if only the other had it pending: it leaves the queue of the first
    place(state, 0, 1, 0, 2, 1)
    assert state.queue[0, 0, : state.queued[0, 0]].tolist() == [10, 12]
    assert 3 not in state.pending[0]
    walk(world, tasks, state, 0)
    assert state.pending[0, 0, 3] == 10
    assert state.queued[0, 0] == 1


def test_with_one_task_a_slot_the_second_begins_a_slot_later() -> None:
    for one_task, expected in ((False, [4, 4]), (True, [4, 5])):
        setting = small_setting((16, 16), tasks=2, kept=0.5, arrivals=50.0)
        setting = type(setting)(**{**setting.__dict__, "one_task": one_task, "kinds": ("mnist",)})
        durations = play(setting, speeds(setting), "least", np.array([0])).durations
        assert sorted(durations[0].tolist()) == expected


def test_tasks_arrive_as_the_setting_says() -> None:
    tasks = draw_tasks(SYNTHETIC, np.arange(200))
    assert tasks.arrival.shape == (200, 192)
    assert (np.diff(tasks.arrival, axis=1) >= 0).all()
    assert 192 / (tasks.arrival[:, -1] + 1).mean() == pytest.approx(SYNTHETIC.arrivals, rel=0.02)
    assert tasks.kind.mean() == pytest.approx(0.5, abs=0.01)
    seen = tasks.visible.sum(axis=2)
    assert [(seen == count).mean() for count in (1, 2, 3)] == pytest.approx([1 / 3] * 3, abs=0.01)
    np.testing.assert_array_equal(tasks.visible[7], draw_tasks(SYNTHETIC, np.array([7])).visible[0])


def check(setting: Any, worlds: Worlds, e: int) -> None:
    """What holds between any two rounds of world ``e``."""
    state, world = worlds.state, worlds.world
    placed = []
    for agent in range(len(setting.capacity)):
        runs = state.running[e, agent, : state.runs[e, agent]].tolist()
        given = state.amounts[e, runs].sum(axis=0) if runs else np.zeros(2)
        assert (state.free[e, agent] >= 0).all()
        assert (state.free[e, agent] + given == world.capacity[agent]).all()
        assert (state.owner[e, runs] == agent).all()
        placed += runs
        waiting = [task for task in state.pending[e, agent].tolist() if task >= 0]
        waiting += state.queue[e, agent, : state.queued[e, agent]].tolist()
        assert len(set(waiting)) == len(waiting)
        assert (state.owner[e, waiting] == -1).all()
        assert worlds.tasks.visible[e, waiting, agent].all()
    assert len(set(placed)) == len(placed)
    assert (state.progress[e, placed] < 1.0).all()
    assert state.finished[e] + len(placed) <= state.arrived[e]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["hetero_6", "synthetic"])
def test_capacity_is_never_exceeded_and_no_task_is_placed_twice(rule: str, name: str) -> None:
    setting = SETTINGS[name]
    setting = type(setting)(**{**setting.__dict__, "tasks": 60})
    table = speeds(setting)
    worlds, rng, ends = Worlds(setting, table, np.arange(2)), np.random.default_rng(1), lengths(table)
    while worlds.going.any():
        for e in np.flatnonzero(worlds.going):
            chance = rng.random((len(setting.capacity), 2))
            kinds = worlds.tasks.kind[e]
            decide(RULES[rule], worlds.world, ends, kinds, worlds.state, e, chance, worlds.choice)
        worlds.carry_out()
        for e in range(2):
            check(setting, worlds, e)
    assert (worlds.outcome.durations > 0).all()
    assert worlds.outcome.used.max() <= 1.0


def test_equal_seeds_are_equal_worlds_and_equal_runs() -> None:
    table = speeds(SYNTHETIC)
    both = play(SYNTHETIC, table, "random", np.array([5, 6]))
    again = play(SYNTHETIC, table, "random", np.array([5, 6]))
    np.testing.assert_array_equal(both.durations, again.durations)
    assert (both.durations[0] != both.durations[1]).any()


def test_nothing_chosen_lets_a_slot_go_by() -> None:
    _, _, state = begun(small_setting((16, 16)), [IMAGE])
    choice = no_choice(1, 1)
    assert not place_chosen(state, 0, choice)
    choice.slot[0, 0] = 0  # chosen, and to wait
    assert not place_chosen(state, 0, choice)
    choice.cpus[0, 0], choice.gpus[0, 0] = 2, 1
    assert place_chosen(state, 0, choice)


@pytest.mark.parametrize("name", PUBLISHED_JCT)
@pytest.mark.parametrize("rule", PUBLISHED)
def test_rules_come_within_three_deviations_of_the_published_figures(name: str, rule: str) -> None:
    setting = SETTINGS[name]
    found = play(setting, speeds(setting), rule, np.arange(20)).mean
    published = PUBLISHED_JCT[name][PUBLISHED[rule]]
    assert abs(published - found.mean()) < 3 * found.std(ddof=1)


def test_profiles_are_read_from_the_folder_of_data(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tapfinger"
    folder.mkdir()
    lines = ["task,cpu_cores,gpus,n_runs,mean_completion_s"]
    lines += [f"{kind},{c},{g},2,36.0" for kind in ("mnist", "lm", "audio") for c in range(1, 17) for g in range(1, 9)]
    (folder / "profile_container_mean_s.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path))
    assert speeds_of(SETTINGS["testbed"]).steady[2, 16, 8] == pytest.approx(0.1)
    (folder / "profile_container_mean_s.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is no table of tasks"):
        read_profiles(folder / "profile_container_mean_s.csv")
    monkeypatch.delenv("CES_DATA_DIR")
    with pytest.raises(ValueError, match="CES_DATA_DIR, which is not set"):
        speeds_of(SETTINGS["testbed"])


def test_a_world_in_which_a_task_is_never_placed_is_given_up() -> None:
    """A task that needs 2 CPUs, where the only cluster has 1: it has lasted for as long as anybody waited."""
    setting = small_setting((1, 1), tasks=3, arrivals=3.0)
    found = play(setting, speeds(setting), "thrifty", np.array([2]))
    arrival = draw_tasks(setting, np.array([2])).arrival
    assert found.slots.tolist() == [210]
    np.testing.assert_array_equal(found.durations, 210 - arrival)
