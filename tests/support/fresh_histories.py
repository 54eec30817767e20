"""Histories that are drawn anew each time. Of seven, hypothesis makes six of an earlier one, with parts of it in place of
others: that seldom leads to what three events in a row do."""

from __future__ import annotations

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider


class Fresh(HypothesisProvider):
    """Draws as hypothesis does. What is drawn by a backend of another name is not made into more of its kind."""


BACKEND = "fresh"
AVAILABLE_PROVIDERS[BACKEND] = Fresh
