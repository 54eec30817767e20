"""Histories that are drawn anew each time. Hypothesis by itself draws one in seven and makes the others of it, with
parts of it in place of others, which seldom leads to what takes three different events in a row."""

from __future__ import annotations

from typing import Any

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider


class Fresh(HypothesisProvider):
    """Draws as hypothesis does. What is drawn by a backend of another name is not made into more of its kind."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        """None of the numbers that stand in imported modules: a seed draws the same whatever else was imported."""


BACKEND = "fresh"
AVAILABLE_PROVIDERS[BACKEND] = Fresh
