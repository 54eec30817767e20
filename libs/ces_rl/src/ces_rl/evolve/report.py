"""Tables of ``ces evolve``."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.table import Table

from ces_core.evolution.confidence import interval
from ces_core.evolution.decision_log import WholeLog
from ces_core.evolution.gate import Verdict
from ces_core.evolution.standing import Standing, role_of
from ces_core.evolution.state import State

SHOWN = 5
"""Changes of the last time."""


def state_table(known: Standing) -> Table:
    """What is live, and what was found since."""
    state, candidate, watched = known.state, known.candidate, known.watched
    table = Table("", "", show_header=False)
    frozen = " (frozen)" if state.frozen else ""
    table.add_row("live", f"{state.live}{frozen}")
    if state.former is not None and watched is not None:
        table.add_row("shadow", f"{state.former}; gain over it {interval(watched.gains)}")
    table.add_row("candidate", "none" if candidate is None else candidate.name)
    basis = state.basis
    table.add_row(
        "base", "no scheduler yet" if basis is None else f"{basis.solver}, {basis.policy or 'its own policy'}"
    )
    for change in state.history[-SHOWN:]:
        table.add_row(_time(change.at_s), f"{change.version} {change.what}: {change.why}")
    return table


def versions_table(known: Standing) -> Table:
    """Each version beside the live one."""
    table = Table("version", "policy", "made", "learned from", "until", "gain", "refused", "slower", "")
    for each in known.versions:
        verdict = known.verdicts[each.name]
        learned = f"{each.decisions} + {each.synthetic}"
        found = (
            (str(verdict.interval), str(verdict.refused), f"{verdict.slower:.2f}")
            if verdict.interval.count
            else ("",) * 3
        )
        table.add_row(
            *(each.name, each.policy, _time(each.made_s), learned, _time(each.learned_until_s)),
            *(*found, role_of(known, each.name)),
        )
    return table


def verdict_table(version: str, state: State, verdict: Verdict) -> Table:
    """What was found of one version."""
    table = Table("", f"{version} beside {state.live}")
    found = verdict.interval
    table.add_row("decisions", str(found.count))
    table.add_row("mean gain", f"{found.mean:+.4f}")
    table.add_row("95 %, at any time", f"{found.low:+.4f} to {found.high:+.4f}")
    table.add_row("jobs refused", str(verdict.refused))
    table.add_row("slowest in a hundred", f"{verdict.slower:.2f} times as long")
    return table


def log_line(log: WholeLog) -> str:
    """In a sentence."""
    if not log.decisions:
        return "no decisions are logged yet"
    first, last = (_time(log.decisions[at].at_s) for at in (0, -1))
    torn = f"; {log.torn} torn lines are left out" if log.torn else ""
    return f"{len(log.decisions)} decisions are logged, from {first} to {last} UTC{torn}"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")
