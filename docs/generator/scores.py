"""The reference core, from the rates that stand for it."""

from __future__ import annotations

from ces_common.scores import REFERENCE, REFERENCE_NUMBER, UNITS
from generator.markdown import code, table


def reference() -> str:
    """A row for each kind."""
    rows = [(code(kind), f"{rate:,.0f} {UNITS[kind]}") for kind, rate in REFERENCE.items()]
    return table(("kind", f"one thread of the reference core (number {REFERENCE_NUMBER})"), rows)
