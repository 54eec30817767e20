"""A run from beginning to end: an algorithm on an environment, with its seed, log, checkpoints, and at last the shipped
file with its model card."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from ces_rl.algorithms.base import Algorithm, RefusedError
from ces_rl.envs.base import Environment, PolicyEnv
from ces_rl.flags import defaults_of
from ces_rl.gang import ALONE
from ces_rl.log import Log, flat
from ces_rl.needs import torch
from ces_rl.plugins import algorithm as algorithm_of
from ces_rl.plugins import environment

SPEC, CARD, BEFORE = "run.json", "model-card.json", "before.json"
CHECKPOINTS = ("checkpoint.pt", "checkpoint.json")
"""That of a network, and that of numbers."""

News = Callable[[int, int, dict[str, float]], None]
"""Hears the updates that are done, those in all, and what the latest one measured."""
Say = Callable[[str], None]


SAVED_S = 15.0
"""In a gang a checkpoint is written after the next update once the last one is so old."""


class RunExistsError(ValueError):
    """There is a run in the folder, and nobody said that it is to go on."""


class StoppedError(Exception):
    """The run was told to stop, and did so after an update, with a checkpoint."""


@dataclass(frozen=True)
class Run:
    """An algorithm made for an environment, and the folder that it works in."""

    names: tuple[str, str]  # of the algorithm and the environment
    algorithm: Algorithm
    env: Environment
    folder: Path

    @staticmethod
    def make(
        algorithm: str,
        env: str,
        seed: int,
        algorithm_settings: Mapping[str, Any],
        env_settings: Mapping[str, Any],
        folder: Path,
    ) -> Run:
        """Settings that are not given are the environment's defaults for this algorithm. Raises PluginError,
        RefusedError, and ValueError for settings that cannot be."""
        kind, place = algorithm_of(algorithm), environment(env)
        defaults = place.defaults(algorithm)
        where = place(place.Settings(**defaults_of(place.Settings, {**defaults.env, **env_settings})))
        settings = kind.Settings(**defaults_of(kind.Settings, {**defaults.algorithm, **algorithm_settings}))
        try:
            made = kind(where, settings, seed)
        except RefusedError as error:
            raise RefusedError(f"{algorithm} does not learn {env}: {error}") from error
        if not hasattr(made, "gang"):
            made.gang = ALONE
        return Run((algorithm, env), made, where, folder)

    @staticmethod
    def open(folder: Path) -> Run:
        """The run in ``folder``, as far as its checkpoint has come. Raises ValueError."""
        if not (folder / SPEC).exists():
            raise ValueError(f"{folder} holds no run: there is no {SPEC}")
        run = Run.of_spec(json.loads((folder / SPEC).read_text()), folder)
        if not run.checkpoint.exists():
            raise ValueError(f"{folder} holds no checkpoint yet")
        run.restore()
        return run

    @staticmethod
    def of_spec(spec: Mapping[str, Any], folder: Path) -> Run:
        """The run that :meth:`spec` says all of, from its beginning. Raises as :meth:`make`."""
        kind, place = algorithm_of(spec["algorithm"]), environment(spec["env"])
        own, of_env = (
            asdict(TypeAdapter(settings).validate_python(spec["settings"][part]))  # JSON has lists for tuples
            for part, settings in (("algorithm", kind.Settings), ("env", place.Settings))
        )
        return Run.make(spec["algorithm"], spec["env"], spec["seed"], own, of_env, folder)

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINTS[0 if isinstance(self.env, PolicyEnv) else 1]

    def save(self) -> None:
        """The checkpoint, whole or not at all."""
        part = self.checkpoint.with_suffix(".part")
        if isinstance(self.env, PolicyEnv):
            torch.save(self.algorithm.state(), part)
        else:
            part.write_text(json.dumps(self.algorithm.state()))
        part.replace(self.checkpoint)

    def restore(self) -> None:
        """Raises ValueError for the checkpoint of another run."""
        if isinstance(self.env, PolicyEnv):
            self.algorithm.restore(torch.load(self.checkpoint, weights_only=True))
        else:
            self.algorithm.restore(json.loads(self.checkpoint.read_text()))

    def spec(self) -> dict[str, Any]:
        """What says all of the run."""
        return {
            "algorithm": self.names[0],
            "env": self.names[1],
            "seed": self.algorithm.seed,
            "settings": {"algorithm": asdict(self.algorithm.settings), "env": asdict(self.env.settings)},
        }


def train(
    run: Run,
    *,
    minutes: float | None = None,
    resume: bool = False,
    news: News = lambda *_: None,
    say: Say = lambda _: None,
    stops: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Trains and ships: returns the model card, which also lies in the run's folder beside the shipped file.

    Stops when all updates are done, or early enough for the last evaluation to end within ``minutes``; ``stops`` is
    asked after every update. One thread: decisions are too small to share out, and runs stay reproducible. Raises
    RunExistsError, StoppedError, and ValueError where the checkpoint belongs to another run. In a gang this is the
    first rank's part; :func:`learn_along` is that of the others.
    """
    started = time.monotonic()
    if torch is not None:
        torch.set_num_threads(1)
    algorithm, env, folder = run.algorithm, run.env, run.folder
    if not resume and any((folder / name).exists() for name in CHECKPOINTS):
        raise RunExistsError(f"{folder} holds a run: go on with --resume, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    if env.unasked:
        say(f"to compare only: {env.unasked}")
    say("the held-out instances are measured")
    env.prepare(folder)
    before = _before(run, say)  # of the new solution, whatever the checkpoint holds
    if run.checkpoint.exists():
        run.restore()
    algorithm.gang.of_first(algorithm.state())
    (folder / SPEC).write_text(json.dumps(run.spec(), indent=2) + "\n")
    total = algorithm.settings.updates
    finish = math.inf if minutes is None else started + 60.0 * minutes - 1.2 * before["seconds"]
    longest, out_of_time, saved = 0.0, False, time.monotonic()
    with Log(folder, algorithm.updates, flat(before["scores"])) as log:
        say(log.about)
        while algorithm.updates < total:
            begun = time.monotonic()
            if begun + longest > finish:
                out_of_time = True
                break
            measured = algorithm.update()
            if algorithm.updates % algorithm.settings.evaluate_every == 0:
                measured |= flat(env.evaluate(algorithm.solution, thorough=False))
            log.row(algorithm.updates, algorithm.steps, measured)
            news(algorithm.updates, total, measured)
            stopped = stops()
            due = algorithm.updates % algorithm.settings.evaluate_every == 0
            if stopped or due or (algorithm.gang.malleable and time.monotonic() - saved >= SAVED_S):
                run.save()
                saved = time.monotonic()
            if stopped:
                raise StoppedError(f"stopped after {algorithm.updates} of {total} updates")
            longest = max(longest, time.monotonic() - begun)
    if out_of_time:
        say(f"stopped after {algorithm.updates} of {total} updates, to end within {minutes:g} minutes")
    run.save()
    return ship(run, folder, seconds=time.monotonic() - started)


def learn_along(run: Run, stops: Callable[[], bool]) -> None:
    """The part of a gang's other ranks: each does its share of every update, and writes nothing. Raises StoppedError
    when the first rank does."""
    if torch is not None:
        torch.set_num_threads(1)
    algorithm = run.algorithm
    algorithm.restore(algorithm.gang.of_first(algorithm.state()))
    while algorithm.updates < algorithm.settings.updates:
        algorithm.update()
        if stops():
            raise StoppedError(f"stopped after {algorithm.updates} updates")


def ship(run: Run, out: Path, *, seconds: float | None = None) -> dict[str, Any]:
    """Writes the shipped file and its card to ``out``, with scores measured now. Returns the card."""
    algorithm, env = run.algorithm, run.env
    out.mkdir(parents=True, exist_ok=True)
    if seconds is None:
        env.prepare(run.folder)
    before = _before(run, lambda _: None)
    version = f"{run.names[1]}-{fingerprint(algorithm.solution)}"
    card = {
        "version": version,
        **run.spec(),
        "schema": env.schema,
        "commit": _commit(),
        "updates": algorithm.updates,
        "complete": algorithm.updates == algorithm.settings.updates,
        "steps": algorithm.steps,
        "seconds": None if seconds is None else round(seconds, 1),
        "machine": platform.machine() + (f", torch {torch.__version__}" if torch is not None else ""),
        "scores": {"instances": env.instances, **env.evaluate(algorithm.solution, thorough=True)},
        "before learning": {"what": before["what"], **before["scores"]},
        "baselines": before["baselines"],
    }
    env.export(algorithm.solution, out / env.file, version, card)
    (out / CARD).write_text(json.dumps(card, indent=2) + "\n")
    return card


def fingerprint(solution: Any) -> str:
    """Of the weights: the same run gives the same."""
    digest = hashlib.sha256()
    if hasattr(solution, "state_dict"):
        for name, value in solution.state_dict().items():
            digest.update(name.encode() + value.numpy().tobytes())
    else:
        for numbers in solution:
            digest.update(np.asarray(numbers).tobytes())
    return digest.hexdigest()[:8]


def _before(run: Run, say: Say) -> dict[str, Any]:
    """Scores of the solution that learning begins with, measured once and kept in the run's folder."""
    file = run.folder / BEFORE
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        return found
    start = getattr(run.algorithm.settings, "start_from", "")
    what = f"the policy of {start}" if start else run.env.untrained
    say(f"before learning: {what}")
    begun = time.monotonic()
    scores = run.env.evaluate(run.algorithm.solution, thorough=True)
    seconds = time.monotonic() - begun
    found = {"what": what, "seconds": seconds, "scores": scores, "baselines": run.env.baselines()}
    for name, value in flat(scores).items():
        say(f"  {name} {value:.4f}")
    file.write_text(json.dumps(found, indent=2) + "\n")
    return found


def _commit() -> str:
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer.stdout.strip()
