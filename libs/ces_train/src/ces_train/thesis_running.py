"""The presets ``thesis`` and ``balance`` from beginning to end: how their policies are judged and written out."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ces_core.policy.thesis_onnx import BANDWIDTH, INPUT, MAPPING
from ces_core.policy.thesis_schema import WIDTH, schema_hash
from ces_train.evaluation import Score, Validation, beside_search
from ces_train.export import OPSET, with_properties
from ces_train.games import WON, Most
from ces_train.running import Course
from ces_train.thesis_games import ThesisGames
from ces_train.thesis_network import Heads, ThesisPolicy
from ces_train.thesis_ppo import ThesisTrainer
from ces_train.thesis_settings import ThesisSettings


def course(settings: ThesisSettings, seed: int) -> Course:
    """What :func:`ces_train.running.train` needs to know of these presets."""
    trainer = ThesisTrainer(settings, seed)

    def scores(validation: Validation) -> dict[str, Score]:
        return evaluate(trainer.policy, validation)

    def write(path: Path, version: str, card: dict[str, Any]) -> None:
        export(trainer.policy, path, version, card)

    return Course(trainer, settings, asdict(settings), schema_hash(), {"greedy": scores}, write)


def evaluate(policy: ThesisPolicy, validation: Validation) -> dict[str, Score]:
    """Regime -> score, always taking the best action. Without a bandwidth head rates follow from importance, as in
    training: on the widest shortest paths."""
    count = len(validation.reference)
    games = ThesisGames(count, Most.of(validation.pool), bandwidth=policy.bandwidth is not None)
    games.start(validation.pool, np.arange(count))
    seats = games.seats
    while games.playing.any():
        with torch.no_grad():
            seen = (torch.from_numpy(part) for part in (seats.state, seats.phase, seats.mask))
            scores = policy(*seen)[0].numpy()
        games.step(np.argmax(np.where(seats.mask, scores, -np.inf), axis=1))
    return beside_search(validation, np.where(seats.status == WON, games.worth, -np.inf))


def export(policy: ThesisPolicy, path: Path, version: str, card: dict[str, Any]) -> None:
    """Writes ``policy`` as ONNX, for any number of states at once, with its schema's hash, version and card."""
    heads = [MAPPING] if policy.bandwidth is None else [MAPPING, BANDWIDTH]
    part = path.with_suffix(".part")
    with warnings.catch_warnings():
        # The newer exporter needs further packages, and makes larger graphs of a network this plain.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            Heads(policy).eval(),
            (torch.zeros(2, WIDTH),),
            str(part),
            dynamo=False,
            input_names=[INPUT],
            output_names=heads,
            dynamic_axes={name: {0: "batch"} for name in (INPUT, *heads)},
            opset_version=OPSET,
        )
    with_properties(part, schema_hash(), version, card)
    part.replace(path)
