"""How fast a node is, in words."""

from __future__ import annotations

from typing import Final

from ces_client.view.formats import DASH
from ces_common.messages.scores import CategoryScore, NodeScores, RawScore

_PREFIXES: Final = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"))


def level_text(scores: NodeScores | None) -> str:
    """``5.4``, or ``5.4 noisy``."""
    if scores is None or scores.level is None:
        return DASH
    return f"{scores.level:g}{_noise(scores.noisy)}"


def category_text(category: CategoryScore) -> str:
    """``computing 1.94 (integer, float)``: how many reference cores it is worth, and what that was made of."""
    return f"{category.category} {category.score:.3g}{_noise(category.noisy)} ({', '.join(category.kinds)})"


def raw_text(raw: RawScore) -> str:
    """``integer, 2 threads: 32 kpowers/s, score 2 (1 per CPU second), spread 1.2 %; pow of Python 3.11.2``."""
    where = f"{raw.threads} thread{'s' if raw.threads > 1 else ''}{f' on {raw.cores}' if raw.cores else ''}"
    others = "" if raw.others is None else f", others used {raw.others:.0%} of the CPU"
    speed = "" if raw.speed is None else f" ({raw.speed:.3g} per CPU second)"
    told = f"{_rate(raw)}, score {raw.score:.3g}{speed}, spread {raw.spread * 100:.1f} %{others}{_noise(raw.noisy)}"
    return f"{raw.kind}, {where}: {told}; {raw.source}"


def _rate(raw: RawScore) -> str:
    factor, prefix = next((each for each in _PREFIXES if raw.rate >= each[0]), (1.0, " "))
    return f"{raw.rate / factor:.3g}{prefix}{raw.unit}"


def _noise(noisy: bool) -> str:
    return " noisy" if noisy else ""
