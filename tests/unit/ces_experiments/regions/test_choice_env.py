"""Which region a job goes to, learned from simulated offers; a small world of our own."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

from ces_core.registry import get_solver
from ces_experiments.regions.choice_env import (
    NO_PLACE,
    OfferVector,
    RegionChoice,
    RegionChoiceSettings,
    judged,
    seen,
)
from ces_experiments.regions.drawn import Shape, draw
from ces_experiments.regions.offers import Offers, recorded, simulated
from ces_federation.policy import load_policy
from ces_federation.sight import JOB, REGION
from ces_rl.algorithms.imitation import Imitation, ImitationSettings
from ces_rl.run import Run, ship

pytestmark = pytest.mark.needs("torch")
SMALL = RegionChoiceSettings(
    regions=4, nodes=4, jobs=10, load=1.2, duration_s=120.0, solver="least-allocated", runs=2, validation=1, width=8
)
SHAPE = Shape(4, 4, 10, 1.2, "uneven", "tight", (1, 2, 3), 120.0)


@pytest.fixture(scope="module")
def env() -> RegionChoice:
    return RegionChoice(SMALL)


def offers() -> Offers:
    """Two offers to three regions: in the first the second and third have a place, in the other none has."""
    worth = np.array([[np.nan, 0.5, 0.75], [np.nan, np.nan, np.nan]])
    allowed = np.array([[True, True, True], [True, False, True]])
    rank = np.array([[0, 1, 2], [0, 3, 1]])
    shape = (2, 3, len(REGION))
    return Offers(np.zeros(shape, np.float32), np.zeros((2, len(JOB)), np.float32), allowed, rank, worth)


def test_what_is_recorded_is_what_the_home_was_told_and_what_the_others_would_bid() -> None:
    found = recorded(draw(SHAPE, 3), get_solver("least-allocated"), 3)
    assert found is not None
    assert found.regions.shape[1:] == (4, len(REGION))
    assert (found.allowed.sum(axis=1) > 1).all(), "offers without a choice are left out"
    assert np.isnan(found.worth[~found.allowed]).all()
    assert (found.rank[~found.allowed] == 4).all()
    has = ~np.isnan(found.worth)
    assert 0 < has.sum() < found.allowed.sum(), "sums say that there may be room, and not that there is"
    assert ((found.worth[has] > 0) & (found.worth[has] <= 1)).all()
    again = recorded(draw(SHAPE, 3), get_solver("least-allocated"), 3)
    assert again is not None
    assert np.array_equal(found.regions, again.regions)


def test_runs_without_a_choice_are_refused() -> None:
    with pytest.raises(ValueError, match="no job had a choice"):
        simulated(Shape(2, 4, 5, 0.5, "even", "tight", (1,), 60.0), "least-allocated", [1])


def test_a_region_without_a_place_is_regretted_as_told_and_nothing_is_learned_where_none_has_one(
    env: RegionChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = OfferVector(env, 2, 0)
    monkeypatch.setattr(env, "offers", offers())
    vector.reset(0.0)
    vector._rows = np.array([0, 1])
    regret, best = vector.regrets(np.array([0, 1]), NO_PLACE)
    assert regret[0] == pytest.approx([NO_PLACE, 0.25, 0.0])
    assert (best[0], best[1]) == (0.75, -np.inf)
    assert vector.running.all()
    assert vector.step(np.array([1, 0])) == pytest.approx([0.5, -NO_PLACE])
    assert not vector.running.any()
    assert vector.success.tolist() == [True, False]


def test_how_an_order_is_judged() -> None:
    """Only offers count for which somebody has a place; where the order is final, the best bid is passed over."""
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    assert judged(offers(), scores, final=True) == {"first has room": 0.0, "one has room": 1.0, "regret": 0.25}
    assert judged(offers(), scores, final=False)["regret"] == 0.0


def test_it_learns_and_what_is_shipped_is_what_the_federation_asks(env: RegionChoice, tmp_path: Path) -> None:
    settings = ImitationSettings(
        **{**env.defaults("imitation").algorithm, "updates": 4, "episodes": 64, "gradient_steps": 60}
    )
    algorithm = Imitation(env, settings, seed=1)
    first, *_, last = (algorithm.update()["regret"] for _ in range(4))
    assert last < first
    card = ship(Run(("imitation", "region-choice"), algorithm, env, tmp_path), tmp_path)
    assert card["scores"]["policy"]["offers"].keys() == card["baselines"]["rule"]["offers"].keys()
    policy = load_policy(tmp_path / "regions.onnx")
    assert policy.version == card["version"]
    rows = np.arange(3)
    regions, job, allowed = seen(env.offers, rows)
    with torch.no_grad():
        expected = algorithm.solution(*map(torch.from_numpy, (regions, job, allowed)))[0].numpy()
    for row in rows:
        found = policy.scores(regions[row].tolist(), job[row].tolist(), (allowed[row] > 0).tolist())
        assert np.array(found)[allowed[row] > 0] == pytest.approx(expected[row][allowed[row] > 0], abs=1e-4)
    fewer = policy.scores(regions[0][:2].tolist(), job[0].tolist(), [True, True])
    assert len(fewer) == 2, "any number of regions"


def test_it_is_named_as_the_command_and_the_refusals_of_other_policies_name_it() -> None:
    project = tomllib.loads((Path(__file__).parents[4] / "experiments/pyproject.toml").read_text())
    named = project["project"]["entry-points"]["ces.envs"]
    assert named == {"region-choice": f"{RegionChoice.__module__}:{RegionChoice.__name__}"}
