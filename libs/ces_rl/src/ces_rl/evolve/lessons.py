"""What a candidate learns from: logged problems, and as many synthetic ones, in a folder of instances."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ces_core.evolution.decision_log import DecisionLogError, Logged
from ces_core.model.generate import REGIMES, random_instance

LEAST = 20
"""Logged problems; fewer teach nothing, and leave too few to validate on."""
FIRST_SEED = 5_000_000
"""Of synthetic problems, away from those of training (from 0) and validation (from 900,000)."""


def learned_until(times: Sequence[float], held_out: float) -> float:
    """The Unix time up to which decisions may be learned from. Held out are the last days (UTC), as many as the share
    ``held_out`` says, one at least; where all decisions are of one day, the last of them. ``times``: of the decisions,
    rising. Raises ValueError where nothing is left to learn from."""
    days = sorted({_day(at_s) for at_s in times})
    if len(days) > 1:
        first = days[-min(max(1, round(held_out * len(days))), len(days) - 1)]
        learned = [at_s for at_s in times if _day(at_s) < first]
    else:
        learned = list(times[: len(times) - max(1, round(held_out * len(times)))])
    if len(learned) < LEAST:
        raise ValueError(
            f"{len(learned)} of {len(times)} logged decisions may be learned from, and {LEAST} are least: wait for more"
        )
    return learned[-1]


def chosen(decisions: Sequence[Logged], until_s: float, most: int, seed: int) -> list[Logged]:
    """At most ``most`` decisions up to that time, drawn evenly, that an imitating policy can be asked."""
    fit = [each for each in decisions if each.at_s <= until_s and not each.problem.has_goals]
    if len(fit) < LEAST:
        raise ValueError(f"{len(fit)} logged decisions are of jobs without goals, and {LEAST} are least: wait for more")
    drawn = np.random.default_rng(seed).permutation(len(fit))[:most]
    return [fit[i] for i in sorted(drawn.tolist())]


def write_lessons(logged: Sequence[Logged], folder: Path, seed: int) -> int:
    """Write the problems as instances, and beside each a synthetic one of the benchmarks' regimes in turn; returns how
    many synthetic ones there are. Logged and synthetic ones alternate, so that both are among every tenth, on which
    training validates. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    regimes = list(REGIMES)
    for number, each in enumerate(logged):
        synthetic = random_instance(regimes[number % len(regimes)], FIRST_SEED + 100_000 * seed + number)
        first, second = (each.instance, synthetic) if number // 5 % 2 == 0 else (synthetic, each.instance)
        (folder / f"{2 * number:06d}.json").write_text(json.dumps(first))
        (folder / f"{2 * number + 1:06d}.json").write_text(json.dumps(second))
    return len(logged)


def _day(at_s: float) -> str:
    try:
        return datetime.fromtimestamp(at_s, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        raise DecisionLogError(f"a decision says that it was made at {at_s}, which is no time") from None
