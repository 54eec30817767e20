"""TapFinger's settings, played by its rules and by learned policies on the same worlds.

Two rules are added to the published four: ``optimus-unswapped``, whose fit does not take CPUs for GPUs as that of the
public runs does, and CES's own ``thrifty``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress
from scipy.special import stdtrit

from ces_core.amounts.policy import SHIPPED, AmountsPolicy, load_amounts_policy
from ces_core.amounts.rules import PUBLISHED
from ces_core.amounts.settings import SETTINGS, Setting
from ces_experiments.amounts.published import PUBLISHED_JCT
from ces_experiments.amounts.report import REPORT
from ces_experiments.common.command import Experiment
from ces_experiments.common.console import told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_sim.amounts import Outcome, play, play_policy
from ces_sim.profiles import speeds_of

UNSWAPPED = "optimus-unswapped"
LONGEST = 60
"""Slots up to which the distribution of durations is told."""


@dataclass(frozen=True)
class Question:
    """``rounds`` worlds of each of ``settings``, seeds from ``seed`` on; ``policies``: folders, None for what ships."""

    settings: tuple[str, ...]
    rules: tuple[str, ...]
    policies: tuple[Path, ...] | None
    rounds: int
    seed: int

    @property
    def seeds(self) -> Any:
        """(rounds,)"""
        return np.arange(self.seed, self.seed + self.rounds)


@dataclass(frozen=True)
class Learned:
    """A policy by what is left out of it and its setting. ``drawn``: whether drawing actions did better than the
    likeliest ones on the worlds of its validation. ``curve``: of its training, where there is a log."""

    name: str
    setting: str
    policy: AmountsPolicy
    drawn: bool
    curve: Sequence[Mapping[str, float]]


def measure(question: Question, progress: Progress) -> Found:
    """All rules and policies in every setting."""
    learned = [policy for policy in policies(question.policies) if policy.setting in question.settings]
    rules = [*question.rules, *([UNSWAPPED] if "optimus" in question.rules else [])]
    step = told(progress, len(rules) * len(question.settings) + len(learned))
    settings: dict[str, Any] = {}
    for name in question.settings:
        outcomes = {}
        for player, outcome in _played(question, SETTINGS[name], rules, learned):
            outcomes[player] = outcome
            step(f"{name} {player}")
        settings[name] = summarise(SETTINGS[name], outcomes)
    asked = asdict(question) | {"policies": [each.policy.version for each in learned]}
    curves = {f"{each.setting} {each.name}": list(each.curve) for each in learned if each.curve}
    return Found({"question": asked, "settings": settings, "curves": curves})


def _played(
    question: Question, setting: Setting, rules: Sequence[str], learned: Sequence[Learned]
) -> Iterator[tuple[str, Outcome]]:
    table = speeds_of(setting)
    for rule in rules:
        name = "optimus" if rule == UNSWAPPED else rule
        yield rule, play(setting, table, name, question.seeds, swapped=rule != UNSWAPPED)
    for each in learned:
        if each.setting == setting.name:
            rng = np.random.default_rng(question.seed) if each.drawn else None
            yield each.name, play_policy(setting, table, each.policy, question.seeds, rng)


def policies(folders: Sequence[Path] | None) -> list[Learned]:
    """Those in the folders of runs, or those that ship. Raises PolicyError."""
    files = [SHIPPED[name] for name in SHIPPED] if folders is None else [folder / "policy.onnx" for folder in folders]
    return [_learned(file) for file in files if file.is_file()]


def _learned(file: Path) -> Learned:
    policy = load_amounts_policy(file)
    settings, scores = policy.card["settings"]["env"], policy.card["scores"]
    drawn = scores["drawn"][settings["setting"]]["jct"] < scores["best"][settings["setting"]]["jct"]
    name = "tapfinger" if settings["variant"] == "whole" else settings["variant"]
    log = file.with_name("log.csv")
    curve = []
    if log.is_file():
        with log.open(newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                if row["score"]:
                    curve.append({"minutes": float(row["seconds"]) / 60.0, "jct": float(row["score"])})
    return Learned(name, settings["setting"], policy, drawn, curve)


def summarise(setting: Setting, outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """``players``: what each came to; ``against``: player -> peer -> paired difference, for learned policies. Pure."""
    means = {name: outcome.mean for name, outcome in outcomes.items()}
    players = {name: _figures(setting, name, outcome) for name, outcome in outcomes.items()}
    peers = [name for name in outcomes if name in (*PUBLISHED, UNSWAPPED, "thrifty")]
    against = {
        name: {peer: paired(means[name] - means[peer]) for peer in peers} for name in outcomes if name not in peers
    }
    return {"players": players, "against": against}


def _figures(setting: Setting, name: str, outcome: Outcome) -> dict[str, Any]:
    jct = spread(outcome.mean)
    published = PUBLISHED_JCT.get(setting.name, {}).get(PUBLISHED.get(name, "TapFinger" if name == "tapfinger" else ""))
    deviations = (published - jct["mean"]) / jct["std"] if published is not None and jct["std"] else None
    work = outcome.used * outcome.slots[:, None] * np.sum(setting.capacity, axis=0) / setting.tasks
    ends = np.arange(1, LONGEST + 1)
    return {
        "jct": jct,
        "published": {"slots": published, "deviations": deviations},
        "slots": spread(outcome.slots),
        "unfinished": spread(outcome.unfinished),
        "cpu_slots": spread(work[:, 0]),
        "gpu_slots": spread(work[:, 1]),
        "done": {"share": (outcome.durations.reshape(-1, 1) <= ends).mean(axis=0).tolist()},
    }


def paired(differences: Any) -> dict[str, Any]:
    """A spread, and where the true mean lies with 95 % confidence (Student's t)."""
    found = spread(differences)
    around = float(stdtrit(found["n"] - 1, 0.975)) * found["std"] / found["n"] ** 0.5
    return found | {"low": found["mean"] - around, "high": found["mean"] + around}


AMOUNTS = Experiment(Question, measure, REPORT)
