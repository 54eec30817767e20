"""Short trainings with a seed, and what they ship: the hash of every weight, whatever its name. Speaks this tree's
names; nothing of training is imported before it is asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from equivalence.record import Answers, Case

Card = Mapping[str, Any]


def missing() -> str | None:
    """What is lacking here for training."""
    needed = ("torch", "onnx", "tensorboardX")
    return next((f"{name} is not installed (make install-train)" for name in needed if not find_spec(name)), None)


def cases(share: float = 1.0) -> Iterator[Case]:
    """One case for each kind of training; only those without torch for a share below 1."""
    for kind in TRAININGS if share >= 1.0 else ("value",):
        yield {"name": kind, "kind": kind, "seed": 3}


def answer(case: Mapping[str, Any]) -> Answers:
    """The weights that a training ships, and what its card says it scores."""
    training, heard = TRAININGS[case["kind"]], list[dict[str, float]]()
    with TemporaryDirectory() as name:
        file = Path(name) / training.file
        card = training.train(case["seed"], file, heard, training.settings)
        return {"shipped": training.shipped(file, card, heard)}


# How this tree trains: writes the file, notes what each update of a network measured, and returns the card.


def _train_policy(seed: int, file: Path, heard: list[dict[str, float]], settings: Mapping[str, Any]) -> Card:
    """The size-agnostic policy; settings differ from those of its preset."""
    from ces_train import running
    from ces_train.settings import GENERAL, Teaching

    teaching = Teaching(**settings["teaching"])
    course = running.course(replace(GENERAL, **{**settings, "teaching": teaching}), seed)
    return _run(course, file, heard)


def _train_thesis(seed: int, file: Path, heard: list[dict[str, float]], settings: Mapping[str, Any]) -> Card:
    """The thesis's network; ``bandwidth`` as in its presets."""
    from ces_train import thesis_running
    from ces_train.thesis_settings import THESIS

    return _run(thesis_running.course(replace(THESIS, **settings), seed), file, heard)


def _run(course: Any, file: Path, heard: list[dict[str, float]]) -> Card:
    from ces_train.running import POLICY, train

    assert file.name == POLICY

    def news(_: int, __: int, measured: dict[str, float]) -> None:
        heard.append(dict(measured))

    return train(course, file.parent, minutes=None, resume=False, news=news)


def _train_proposals(seed: int, file: Path, _: object, settings: Mapping[str, Any]) -> Card:
    from ces_train.proposals import FILE, Settings, train

    assert file.name == FILE
    return train(Settings(**settings), seed, file.parent, lambda *_: None)


def _train_value(seed: int, file: Path, _: object, settings: Mapping[str, Any]) -> Card:
    from ces_train.longrun import Settings, train

    return train(Settings(**settings), seed, file)


# What was shipped, in neutral words.


def _network(file: Path, card: Card, heard: list[dict[str, float]]) -> dict[str, Any]:
    """Weights from the shipped file rather than from the run: what is exported counts."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(file).graph
    weights = [numpy_helper.to_array(each) for each in graph.initializer]
    return {
        "weights": sorted(f"{[*each.shape]} {each.dtype} {_hash(each.tobytes())}" for each in weights),
        "operators": [node.op_type for node in graph.node],
        "steps": card["steps"],
        "scores": [score[what] for score in _groups(card["scores"]) for what in ("solved", "regret")],
        "composites": [each["composite"] for each in heard],
    }


def _start_weights(file: Path, card: Card, _: object) -> dict[str, Any]:
    """Gains of start plans, of placing tasks again, and of that with the weights that learning begins with."""
    shipped = json.loads(file.read_text())
    gains = (card["gain beside the first dive"], card["gain of remaking it"], card["before learning"])
    return {
        "weights": [[*part.values()] for name, part in shipped.items() if name != "card"],
        "gains": [[*kinds.values()] for kinds in gains],
    }


def _value(file: Path, card: Card, _: object) -> dict[str, Any]:
    """Scores with the value, then without one."""
    shipped = json.loads(file.read_text())
    return {
        "weights": [shipped["node"], shipped["link"], shipped["balance"]],
        "scores": [[*run.values()] for run in _groups(card["scores"])],
    }


def _groups(scores: Mapping[str, Any]) -> Iterator[dict[str, float]]:
    """The figures of every group of instances, for every way to decide."""
    for groups in scores.values():
        if isinstance(groups, dict):
            yield from groups.values()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Training:
    """One kind of training, its settings where they differ from the defaults, and how its answer is read."""

    train: Callable[[int, Path, list[dict[str, float]], Mapping[str, Any]], Card]
    file: str
    settings: Mapping[str, Any]
    shipped: Callable[[Path, Card, list[dict[str, float]]], dict[str, Any]]


_THESIS = {"updates": 3, "games": 128, "minibatch": 256, "evaluate_every": 2, "validation": 4}

TRAININGS = {
    "imitation": Training(
        _train_policy,
        "policy.onnx",
        {
            "teaching": {"rounds": 2, "instances": 32, "limit": 500, "steps": 20, "batch": 64},
            "updates": 2,
            "evaluate_every": 1,
            "validation": 4,
        },
        _network,
    ),
    "ppo": Training(
        _train_policy,
        "policy.onnx",
        {
            "odds": {"thesis": 3.0, "tight": 1.0, "scarce": 1.0},
            "teaching": {},
            "updates": 3,
            "instances": 8,
            "group": 8,
            "spread_floor": 0.02,
            "entropy": (0.7, 0.6),
            "entropy_weight": (0.05, 1e-3, 0.5),
            "temperature": (1.0, 1.0),
            "rate": (1e-4, 1e-5),
            "minibatch": 64,
            "curriculum": 0.5,
            "evaluate_every": 2,
            "validation": 4,
        },
        _network,
    ),
    "thesis": Training(_train_thesis, "policy.onnx", {"preset": "thesis", **_THESIS}, _network),
    "balance": Training(_train_thesis, "policy.onnx", {"preset": "balance", "bandwidth": False, **_THESIS}, _network),
    "proposals": Training(
        _train_proposals,
        "proposals.json",
        {
            "generations": 3,
            "draws": 8,
            "kinds": (("scarce", 10, None, 8), ("tight", 120, 16, 2)),
            "remade_kinds": (("tight", 20, 8, 4),),
        },
        _start_weights,
    ),
    "value": Training(
        _train_value,
        "value.json",
        {"generations": 2, "pairs": 2, "jobs": 12, "odds": {"tight": 0.5, "thesis": 0.5}, "validated": 1},
        _value,
    ),
}
