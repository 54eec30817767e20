"""What whoever chooses regions keeps to, the rule and a policy alike."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from region_policies import write_policy

from ces_common.jobfile import JobFile
from ces_common.messages.regions import BidAnswer, Summary
from ces_federation.choice import MOST_ASKED, names, need_of, shortfall
from ces_federation.chooser import Chooser, chooser

KINDS = ["rule", "shipped", "by hand", "refused"]


@pytest.fixture(params=KINDS)
def chooses(request: pytest.FixtureRequest, tmp_path: Path) -> Chooser:
    if request.param == "rule":
        return chooser("rule", None)
    if request.param == "shipped":
        return chooser("policy", None)
    if request.param == "by hand":
        return chooser("policy", write_policy(tmp_path / "p.onnx", "jobs that wait"))
    return chooser("policy", tmp_path / "gone.onnx")


def drawn_summary(rng: random.Random, name: str) -> Summary:
    def room(most: int) -> dict[str, int]:
        return {"cpu": rng.randint(0, most), "memory": rng.randint(0, most) * 2**20}

    told: dict[str, Any] = {
        "epoch": "e",
        "region": name,
        "block": "10.65.0.0/16",
        "accepts": rng.choice([["default"], ["default", "red"], []]),
        "nodes": rng.randint(0, 20),
        "free": room(20_000),
        "total": room(40_000),
        "largest": room(8000),
        "rooms": [rng.randint(0, 5) for _ in range(rng.randint(0, 7))],
        "queued": rng.randint(0, 9),
    }
    return Summary.model_validate(told)


def drawn_job(rng: random.Random) -> JobFile:
    resources = {"cpu": f"{rng.randint(100, 4000)}m", "memory": f"{rng.randint(1, 4000)}Mi"}
    task = {"name": "w", "replicas": rng.randint(1, 6), "command": ["true"], "resources": resources}
    regions = rng.choice([["any"], ["r1", "r2"], ["r3", "gone"]])
    return JobFile.model_validate({"name": "x", "regions": regions, "tasks": [task]})


def test_only_regions_that_may_have_room_are_asked_each_once_and_few(chooses: Chooser) -> None:
    rng = random.Random(1)
    asked_any = 0
    for _ in range(200):
        file = drawn_job(rng)
        heard = {name: drawn_summary(rng, name) for name in (f"r{i}" for i in range(rng.randint(0, 8)))}
        need = need_of(file)
        chosen = chooses.choose(file, need, heard)
        fits = {name for name in heard if names(need, name) and shortfall(need, heard[name]) is None}
        assert set(chosen.asked) <= fits
        assert len(set(chosen.asked)) == len(chosen.asked) == min(len(fits), MOST_ASKED)
        turned = dict(reversed(heard.items()))
        assert chooses.choose(file, need, turned).asked == chosen.asked, "whatever their order"
        bids = {name: BidAnswer(feasible=rng.random() < 0.7, composite=rng.random()) for name in chosen.asked}
        assert set(chosen.in_order(bids)) == {name for name, bid in bids.items() if bid.feasible}
        asked_any += bool(chosen.asked)
    assert asked_any > 50
