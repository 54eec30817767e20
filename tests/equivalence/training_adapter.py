"""Short trainings with a seed, and what they ship: the hash of every weight, whatever its name. Speaks this tree's
names; nothing of training is imported before it is asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from equivalence.record import Answers, Case

Card = Mapping[str, Any]


def missing() -> str | None:
    """What is lacking here for training."""
    return next(
        (f"{name} is not installed (make install-train)" for name in ("torch", "onnx") if not find_spec(name)), None
    )


def cases(share: float = 1.0) -> Iterator[Case]:
    """One case for each kind of training; only those without torch for a share below 1."""
    for kind in TRAININGS if share >= 1.0 else ("value",):
        yield {"name": kind, "kind": kind, "seed": 3}


def answer(case: Mapping[str, Any]) -> Answers:
    """The weights that a training ships, and what its card says it scores."""
    from ces_rl.run import Run, train

    training, heard = TRAININGS[case["kind"]], list[dict[str, float]]()
    with TemporaryDirectory() as name:
        folder = Path(name)
        run = Run.make(
            training.algorithm, training.env, case["seed"], training.algorithm_settings, training.env_settings, folder
        )
        card = train(run, news=lambda _, __, measured: heard.append(dict(measured)))
        return {"shipped": training.shipped(folder / run.env.file, card, heard)}


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
        "composites": [each["score"] for each in heard],
    }


def _start_weights(file: Path, card: Card, _: object) -> dict[str, Any]:
    """Gains of start plans, of placing tasks again, and of that with the weights that learning begins with."""
    shipped = json.loads(file.read_text())
    scores = (card["scores"]["start plan"], card["scores"]["recreated"], card["before learning"]["recreated"])
    return {
        "weights": [[*part.values()] for name, part in shipped.items() if name != "card"],
        "gains": [[figures["gain"] for figures in kinds.values()] for kinds in scores],
    }


def _value(file: Path, card: Card, _: object) -> dict[str, Any]:
    """Scores with the value, then without one."""
    shipped = json.loads(file.read_text())
    return {
        "weights": [shipped["node"], shipped["link"], shipped["balance"]],
        "scores": [[*run.values()] for run in (*_groups(card["scores"]), *_groups(card["baselines"]))],
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

    algorithm: str
    env: str
    algorithm_settings: Mapping[str, Any]
    env_settings: Mapping[str, Any]
    shipped: Callable[[Path, Card, list[dict[str, float]]], dict[str, Any]]


_THESIS = {"updates": 3, "problems": 128, "minibatch_size": 256, "evaluate_every": 2}

TRAININGS = {
    "imitation": Training(
        "imitation",
        "placement",
        {"updates": 2, "episodes": 32, "limit": 500, "gradient_steps": 20, "batch_size": 64, "evaluate_every": 1},
        {"validation": 4},
        _network,
    ),
    "ppo": Training(
        "ppo",
        "placement",
        {
            "updates": 3,
            "problems": 8,
            "group": 8,
            "group_std_floor": 0.02,
            "ent_coef": (0.05, 0.0),
            "ent_target": (0.7, 0.6),
            "ent_coef_range": (1e-3, 0.5),
            "temperature": (1.0, 1.0),
            "learning_rate": (1e-4, 1e-5),
            "minibatch_size": 64,
            "evaluate_every": 2,
        },
        {"odds": {"thesis": 3.0, "tight": 1.0, "scarce": 1.0}, "curriculum": 0.5, "validation": 4},
        _network,
    ),
    "thesis": Training("ppo", "thesis", _THESIS, {"validation": 4}, _network),
    "balance": Training("ppo", "balance", _THESIS, {"validation": 4}, _network),
    "proposals": Training(
        "cem",
        "start-weights",
        {"updates": 6, "draws": 8},
        {"kinds": (("scarce", 10, None, 8), ("tight", 120, 16, 2)), "recreate_kinds": (("tight", 20, 8, 4),)},
        _start_weights,
    ),
    "value": Training(
        "es",
        "longrun",
        {"updates": 2, "pairs": 2},
        {"jobs": 12, "odds": {"tight": 0.5, "thesis": 0.5}, "validation": 1},
        _value,
    ),
}
