"""What a policy sees of a world."""

from __future__ import annotations

import numpy as np
from amounts_world import IMAGE, LANGUAGE, begun, small_setting

from ces_core.amounts.features import Seen, kinds_of, new_seen, observe
from ces_core.amounts.schema import CLUSTER_FEATURES, PENDING_FEATURES, RUNNING_FEATURES
from ces_core.amounts.settings import SETTINGS
from ces_core.amounts.state import most_running
from ces_sim.amounts import place, walk


def test_the_graph_shows_clusters_tasks_and_who_sees_which() -> None:
    setting = small_setting((8, 4), (16, 16))
    world, tasks, state = begun(setting, [IMAGE, LANGUAGE, LANGUAGE], [[0], [0, 1], [1]])
    place(state, 0, 1, 1, 6, 8)
    walk(world, tasks, state, 0)
    seen = new_seen(1, 2, most_running(world))
    observe(world, tasks, kinds_of(setting), state, np.array([0]), seen)
    small, large = (dict(zip(CLUSTER_FEATURES, row.tolist(), strict=True)) for row in seen.clusters[0])
    assert small == {"cpus-free": 0.5, "gpus-free": 0.25, "queue": 0.0, "cpus": 0.5, "gpus": 0.25, "rank": 0.0}
    assert large == {"cpus-free": 0.625, "gpus-free": 0.5, "queue": 0.0, "cpus": 1.0, "gpus": 1.0, "rank": 1.0}
    first = dict(zip(PENDING_FEATURES, seen.pending[0, 0, 0].tolist(), strict=True))
    assert first["least-cpus"] == 2 / 16
    assert (first["mnist"], first["lm"], first["empty"]) == (1.0, 0.0, 0.0)
    assert first["waited"] == np.float32(0.1)
    assert seen.pending[0, 0, 2:, PENDING_FEATURES.index("empty")].all()
    assert seen.seen[0, 0, 0].tolist() == [1, 0]
    assert seen.seen[0, 0, 1].tolist() == seen.seen[0, 1, 0].tolist() == [1, 1]
    runs = dict(zip(RUNNING_FEATURES, seen.running[0, 1, 0].tolist(), strict=True))
    assert (runs["cpus"], runs["gpus"], runs["lm"]) == (6 / 16, 0.5, 1.0)
    assert runs["slots-run"] == np.float32(0.1)
    assert not seen.running[0, 0].any()
    assert seen.most[0].tolist() == [[8, 4], [10, 8]]
    assert seen.usable[0].sum(axis=1).tolist() == [2, 1]
    np.testing.assert_allclose(seen.outlook[0], [0.0, 1.0])


def test_a_cluster_without_room_may_use_no_slot() -> None:
    setting = small_setting((8, 4))
    world, tasks, state = begun(setting, [IMAGE, IMAGE])
    place(state, 0, 0, 0, 7, 1)
    seen: Seen = new_seen(1, 1, most_running(world))
    observe(world, tasks, kinds_of(setting), state, np.array([0]), seen)
    assert not seen.usable.any()
    assert seen.pending[0, 0, 1, PENDING_FEATURES.index("empty")] == 0


def test_kinds_have_one_place_each_in_all_settings() -> None:
    assert kinds_of(SETTINGS["synthetic"]).tolist() == [0, 1]
    assert kinds_of(SETTINGS["testbed"]).tolist() == [0, 1, 2]
