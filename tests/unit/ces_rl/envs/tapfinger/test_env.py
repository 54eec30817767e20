"""The environment ``tapfinger`` and its network. Everything here needs torch."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainers import made

pytestmark = pytest.mark.needs("torch")

TINY = {"width": 8, "layers": 1, "heads": 2, "validation": 2}


def env(**settings: Any) -> Any:
    from ces_rl.envs.tapfinger.env import TapFinger, TapFingerSettings

    return TapFinger(TapFingerSettings(**(TINY | settings)))


def midway(vector: Any, rounds: int) -> None:
    """Some rounds of the rule's advice."""
    rows = np.arange(vector.slots)
    for _ in range(rounds):
        advice = vector.advice(rows)
        vector.step(np.concatenate([advice, np.zeros((*advice.shape[:2], 1), dtype=np.int64)], axis=-1))


def torched(parts: Any) -> Any:
    import torch

    return tuple(torch.from_numpy(part) for part in parts)


@pytest.mark.parametrize("setting", ["hetero_6", "synthetic"])
def test_the_network_allows_the_amounts_that_the_core_allows_and_no_other(setting: str) -> None:
    import torch

    from ces_core.amounts.choice import allowed_amounts
    from ces_rl.envs.tapfinger.network import FORBIDDEN

    vector = env(setting=setting).vector(3, 0)
    vector.reset(0.0)
    midway(vector, 20)
    torch.manual_seed(0)
    policy = env(setting=setting).policy()
    logits, known, _ = policy(*torched(vector.observe(np.arange(3))))
    cells = policy.all_amounts(known).detach().numpy()
    mask = np.zeros((17, 17), dtype=np.bool_)
    for e, agent in product(range(3), range(vector.agents)):
        pending = vector.state_of.pending[e, agent] >= 0
        usable = logits[e, agent].detach().numpy() > FORBIDDEN / 2
        assert not (usable & ~pending).any()
        assert usable.any() == vector.mask[e, agent]
        if pending.any():
            allowed_amounts(vector.world, vector.state_of, e, agent, mask)
            for slot in np.flatnonzero(pending):
                np.testing.assert_array_equal(cells[e, agent, slot] > FORBIDDEN / 2, mask.ravel())


def test_a_shared_task_has_the_same_state_in_all_its_slots() -> None:
    vector = env().vector(2, 0)
    vector.reset(0.0)
    midway(vector, 8)
    policy = env(layers=2).policy()
    slots, _ = policy.encode(*torched(vector.observe(np.arange(2)))[:4])
    pending, shared = vector.state_of.pending, 0
    for e in range(2):
        places: dict[int, Any] = {}
        for agent, slot in product(range(vector.agents), range(pending.shape[2])):
            task = int(pending[e, agent, slot])
            if task >= 0:
                state = slots[e, agent, slot].detach().numpy()
                shared += task in places
                np.testing.assert_allclose(places.setdefault(task, state), state, atol=1e-6)
    assert shared


@pytest.mark.parametrize("variant", ["whole", "no-han", "no-pointer", "vanilla"])
def test_what_is_exported_answers_as_the_network_does(variant: str, tmp_path: Path) -> None:
    import torch

    from ces_core.amounts.features import Seen
    from ces_core.amounts.policy import load_amounts_policy
    from ces_rl.envs.tapfinger.network import asked

    torch.manual_seed(1)
    where = env(setting="synthetic", variant=variant)
    policy = where.policy().eval()
    where.export(policy, tmp_path / "policy.onnx", "v", {"a": 1})
    shipped = load_amounts_policy(tmp_path / "policy.onnx")
    for setting, rounds in (("synthetic", 5), ("hetero_6", 30)):  # more clusters than in the example of the export
        vector = env(setting=setting).vector(3, 1)
        vector.reset(0.0)
        midway(vector, rounds)
        seen = Seen(*vector.observe(np.arange(3)))
        (mine, my_amounts), (theirs, their_amounts) = asked(policy)(seen), shipped(seen)
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)
        chosen = mine.argmax(axis=-1)
        np.testing.assert_allclose(my_amounts(chosen), their_amounts(chosen), rtol=1e-4, atol=1e-4)
    assert where.evaluate(policy, thorough=False)["drawn"]["synthetic"]["jct"] > 2


def test_variants_without_a_pointer_choose_evenly_or_what_has_waited_longest() -> None:
    import torch

    vector = env(setting="hetero_6").vector(1, 3)
    vector.start(np.array([3]))
    vector.step(np.zeros((1, 6, 3), dtype=np.int64))  # nobody places anything: there are tasks of two slots
    parts = torched(vector.observe(np.arange(1)))
    usable = parts[4].numpy() > 0
    assert usable.sum() > vector.agents
    even = torch.softmax(env(variant="no-pointer").policy()(*parts)[0], -1).detach().numpy()
    first = torch.softmax(env(variant="vanilla").policy()(*parts)[0], -1).detach().numpy()
    assert len(set(parts[1].numpy()[0, ..., 3][usable[0]].tolist())) == 2
    for agent in np.flatnonzero(usable[0].any(axis=1)):
        np.testing.assert_allclose(even[0, agent], usable[0, agent] / usable[0, agent].sum(), atol=1e-6)
        waited = np.where(usable[0, agent], parts[1].numpy()[0, agent, :, 3], -1.0)
        assert set(np.flatnonzero(first[0, agent] > 1e-3)) == set(np.flatnonzero(waited == waited.max()))


def test_rewards_are_what_is_unfinished_when_a_slot_goes_by() -> None:
    for shared in (0.0, 1.0):
        vector = env(setting="hetero_6", shared=shared, unit=1.0).vector(1, 0)
        vector.reset(0.0)
        state, none = vector.state_of, np.zeros((1, 6, 3), dtype=np.int64)
        placing = none.copy()
        placing[0, 5] = (int(np.argmax(state.pending[0, 5] >= 0)), 2 * 17 + 1, 0)
        assert not vector.step(placing).any()  # somebody placed a task: the slot is not over
        own = state.runs[0] + state.queued[0] + (state.pending[0] >= 0).sum(axis=1)
        everyone = state.arrived[0] - state.finished[0]
        assert own[5] > 0
        expected = np.full(6, everyone / 6) if shared else own
        np.testing.assert_allclose(vector.step(none)[0], -expected, rtol=1e-6)


def test_following_the_advice_comes_to_what_the_rule_comes_to() -> None:
    from ces_sim.amounts import play

    where = env(setting="synthetic")
    vector = where.vector(2, 0)
    vector.start(np.array([3, 4]))
    while vector.running.any():
        midway(vector, 1)
    expected = play(where.setting, where.table, "thrifty", np.array([3, 4]))
    np.testing.assert_array_equal(vector.outcome.durations, expected.durations)
    np.testing.assert_allclose(vector.outcome.used, expected.used)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="no multiple of the 3 heads"):
        env(width=8, heads=3)


def test_agents_act_at_once_and_only_mappo_learns_that() -> None:
    from ces_rl.algorithms.base import RefusedError

    for algorithm in ("ppo", "imitation", "cem", "es"):
        with pytest.raises(RefusedError, match="use mappo"):
            made(algorithm, "tapfinger", 0, {}, TINY)
    with pytest.raises(RefusedError, match="use ppo"):
        made("mappo", "thesis", 0, {}, {"width": 8, "validation": 2})
    with pytest.raises(RefusedError, match="no groups"):
        made("mappo", "tapfinger", 0, {"group": 2}, TINY)
