"""A training run from beginning to end: validation, log, checkpoints, and at last the policy with its model card."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from tensorboardX import SummaryWriter

from ces_core.policy.schema import schema_hash
from ces_train.evaluation import FIRST_SEED, Score, Validation, evaluate
from ces_train.export import export
from ces_train.ppo import Trainable, Trainer, run
from ces_train.settings import Settings

CHECKPOINT, VALIDATION, POLICY, CARD = "checkpoint.pt", "validation.json", "policy.onnx", "model-card.json"
SAMPLES = 64
"""Plans that are drawn per instance for the last evaluation."""

News = Callable[[int, int, dict[str, float]], None]
"""Hears the updates that are done, those in all, and what the latest one measured."""


Judge = Callable[[Validation], dict[str, Score]]
"""Regime -> score of the policy as it is."""


class Settled(Protocol):
    """What every kind of run settles on."""

    @property
    def preset(self) -> str: ...
    @property
    def updates(self) -> int: ...
    @property
    def evaluate_every(self) -> int: ...
    @property
    def validation(self) -> int: ...


@dataclass(frozen=True)
class Course:
    """One kind of run. ``judges``: way to decode -> how it is judged; the first is followed while training goes on."""

    trainer: Trainable
    settings: Settled
    plain: dict[str, Any]
    schema: str
    judges: dict[str, Judge]
    write: Callable[[Path, str, dict[str, Any]], None]


def course(settings: Settings, seed: int) -> Course:
    """That of the size-agnostic policy."""
    trainer = Trainer(settings, seed)

    def greedy(validation: Validation) -> dict[str, Score]:
        return evaluate(trainer.scores, validation)

    def drawn(validation: Validation) -> dict[str, Score]:
        return evaluate(trainer.scores, validation, samples=SAMPLES)

    def write(path: Path, version: str, card: dict[str, Any]) -> None:
        export(trainer.policy, path, version, card)

    judges: dict[str, Judge] = {"greedy": greedy, f"best of {SAMPLES}": drawn}
    return Course(trainer, settings, asdict(settings), schema_hash(), judges, write)


class RunExistsError(ValueError):
    """There is a run in the folder, and nobody said that it is to go on."""


def train(course: Course, out: Path, *, minutes: float | None, resume: bool, news: News) -> dict[str, Any]:
    """Trains and returns the model card, which also lies in ``out`` beside the policy. Stops after ``minutes``, or when
    all updates are done. One thread: decisions are too small to share out, and runs stay reproducible.

    Raises RunExistsError, and ValueError where the checkpoint belongs to another run.
    """
    torch.set_num_threads(1)
    started = time.monotonic()
    deadline = None if minutes is None else started + 60.0 * minutes
    out.mkdir(parents=True, exist_ok=True)
    checkpoint = out / CHECKPOINT
    trainer, settings = course.trainer, course.settings
    if checkpoint.exists():
        if not resume:
            raise RunExistsError(f"{out} holds a run: go on with --resume, or name another folder")
        trainer.restore(torch.load(checkpoint, weights_only=True))
    validation = Validation.make(settings.validation, kept=out / VALIDATION)
    with SummaryWriter(str(out / "tensorboard")) as log:

        def each(measured: dict[str, float]) -> None:
            if trainer.updates % settings.evaluate_every == 0:
                for regime, score in next(iter(course.judges.values()))(validation).items():
                    measured |= {f"{regime}/solved": score.solved, f"{regime}/regret": score.regret}
            for name, value in measured.items():
                log.add_scalar(name, value, trainer.steps)
            news(trainer.updates, settings.updates, measured)

        run(trainer, checkpoint, deadline, each)
    version = f"{settings.preset}-{_fingerprint(trainer)}"
    card = {
        "version": version,
        "preset": settings.preset,
        "settings": course.plain,
        "seed": trainer.seed,
        "schema": course.schema,
        "commit": _commit(),
        "updates": trainer.updates,
        "complete": trainer.updates == settings.updates,
        "steps": trainer.steps,
        "seconds": round(time.monotonic() - started, 1),
        "machine": f"{platform.machine()}, torch {torch.__version__}",
        "scores": {
            "instances": f"{settings.validation} of each regime, seeds from {FIRST_SEED}; regret to search",
            **{decoding: _plain(judge(validation)) for decoding, judge in course.judges.items()},
        },
    }
    course.write(out / POLICY, version, card)
    (out / CARD).write_text(json.dumps(card, indent=2) + "\n")
    return card


def _plain(scores: dict[str, Score]) -> dict[str, dict[str, float]]:
    return {regime: score.to_dict() for regime, score in scores.items()}


def _fingerprint(trainer: Trainable) -> str:
    """Of the weights: the same run gives the same."""
    digest = hashlib.sha256()
    for name, value in trainer.policy.state_dict().items():
        digest.update(name.encode() + value.numpy().tobytes())
    return digest.hexdigest()[:8]


def _commit() -> str:
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer.stdout.strip()
