"""What the security benchmark found, as tables, and whether a promise was broken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rich.progress import Progress

from ces_experiments.common.command import Experiment
from ces_experiments.common.machine import in_words
from ces_experiments.common.report import Found, Report
from ces_experiments.common.results import Grid
from ces_experiments.security.attack_process import AttackFailedError
from ces_experiments.security.campaign_run import campaign
from ces_experiments.security.fuzz_run import fuzz
from ces_experiments.security.question import KINDS_OF_TRAINING, Question
from ces_testbed.errors import TestbedError

TOLD = ("p50", "p90", "p99", "worst")
PARTS = {"fuzz": "hostile messages", "campaign": "rogue agent"}
SHOWN = 20  # broken promises that are named


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """Both parts, one after the other."""
    results: dict[str, Any] = {"question": asdict(question)}
    try:
        if question.each:
            results["fuzz"] = fuzz(question, progress)
            yield Found(dict(results), failure=failure(results))
        if question.seconds:
            results["campaign"] = campaign(question, progress)
            yield Found(dict(results), failure=failure(results))
    except AttackFailedError as error:
        raise TestbedError(f"the attacker failed: {error}") from error


def broken(results: Mapping[str, Any]) -> Iterator[str]:
    """The promises that were broken, in words. Pure."""
    for part in PARTS:
        found = results.get(part)
        if found is None:
            continue
        yield from found["changed"]
        for what, count in found.get("wrong", {}).items():
            yield f"{what} ({count} times)"
        if lapses := found["attacked"]["lapses"]:
            yield f"{PARTS[part]}: {lapses} leases of honest nodes ended"
        yield from (f"audit: {finding}" for finding in found.get("audit", ()))


def failure(results: Mapping[str, Any]) -> str | None:
    found = list(broken(results))
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "; ".join([*found[:SHOWN], *more]) or None


def tables(results: Mapping[str, Any]) -> list[Grid]:
    grids, question = [], results["question"]
    where = f"seed {question['seed']} ({in_words(results['machine'])})"
    if found := results.get("fuzz"):
        title = f"Hostile messages of one node: {question['each']} of each kind, {where}."
        columns = ("kind", "sent", "no faster than read", "refused", "ignored", "answered")
        rows = [
            [row["kind"], *(f"{row[key]:,}" for key in ("tries", "within_rate", "refused", "ignored", "answered"))]
            for row in found["kinds"]
        ]
        grids.append(Grid(title, columns, rows))
    if found := results.get("campaign"):
        how_long = f"{question['seconds']:g} s, {found['rounds']} rounds of all attacks"
        title = f"A rogue agent for {how_long}, network {found['network']}, {where}."
        rows = [
            [
                row["attack"],
                *(f"{row[key]:,}" for key in ("tries", "refused", "ignored", "answered")),
                *(f"{row['heartbeat_ms'][key]:,.0f}" if row["heartbeat_ms"] else "-" for key in ("p99", "worst")),
            ]
            for row in sorted(found["attacks"], key=lambda row: str(row["attack"]))
        ]
        times = ("heartbeats meanwhile, p99 in ms", "worst")
        grids.append(Grid(title, ("attack", "tries", "refused", "ignored", "answered", *times), rows))
    grids.append(_heartbeats(results))
    if found := results.get("campaign"):
        rows = [
            [
                kind,
                *(f"{told[key]:,.0f}" for key in ("before_ms", "during_ms")),
                f"{told['ratio']:.2f}",
                *_fate(found, kind),
            ]
            for kind, told in found["training"].items()
        ]
        told_of = ("training", "round before, ms", "round during, ms", "ratio", "state", "attempt", "restarts")
        grids.append(Grid("Training while the rogue agent attacks.", told_of, rows))
    rows = [[each, "broken"] for each in broken(results)] or [["none", "-"]]
    grids.append(Grid("Promises that were broken.", ("promise", ""), rows))
    return grids


def _fate(found: Mapping[str, Any], kind: str) -> list[str]:
    job = found["jobs"][kind]
    return [str(job[key]) for key in ("state", "attempt", "restarts")]


def _heartbeats(results: Mapping[str, Any]) -> Grid:
    rows = []
    for part, name in PARTS.items():
        found = results.get(part)
        if found is None:
            continue
        for when, words in (("calm", "before"), ("attacked", "during")):
            times = found[when]["heartbeat_ms"]
            told = [f"{times[key]:,.1f}" if times else "-" for key in TOLD]
            rows.append([f"{name}, {words}", *told, str(times.get("count", 0)), str(found[when]["unanswered"])])
        rows.append([f"{name}, ratio", *_ratios(found), "", ""])
    columns = ("heartbeat round trip of honest agents, ms", *TOLD, "n", "unanswered in time")
    return Grid("Heartbeats of honest agents.", columns, rows)


def _ratios(found: Mapping[str, Any]) -> list[str]:
    before, during = found["calm"]["heartbeat_ms"], found["attacked"]["heartbeat_ms"]
    return [f"{during[key] / before[key]:.2f}" if before and during and before[key] else "-" for key in TOLD]


def asked(*, trained: tuple[str, ...] = KINDS_OF_TRAINING, **values: Any) -> Question:
    return Question(trained=trained, **values)


SECURITY = Experiment(asked, measure, Report(tables))
