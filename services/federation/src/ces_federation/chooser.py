"""Whom a home asks for a bid, and whose bid it takes: by the rule, or by a learned policy beside it.

The rule says which regions may have room; a policy only orders these. Where it cannot be asked, the rule orders them,
and the reason that people read says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import structlog
from prometheus_client import Counter

from ces_common.jobfile import JobFile
from ces_common.messages.regions import BidAnswer, Summary
from ces_federation.choice import MOST_ASKED, Need, able, in_order, worth_asking
from ces_federation.policy import SHIPPED, PolicyError, RegionPolicy, load_policy
from ces_federation.sight import about_job, about_region

log = structlog.get_logger()
Way = Literal["rule", "policy"]
CHOICES = Counter("ces_region_choices_total", "Offers for which it was chosen whom to ask, by what chose", ["by"])
for _by in ("rule", "policy", "stand-in"):
    CHOICES.labels(_by)


@dataclass(frozen=True, slots=True)
class Chosen:
    """``asked``: whom to ask for a bid, the best first. ``final``: that order decides which of the bids with room is
    taken; else the best bid is. ``why``: for people, None where the rule was to choose."""

    asked: Sequence[str]
    final: bool = False
    why: str | None = None

    def in_order(self, bids: Mapping[str, BidAnswer]) -> list[str]:
        """Those with room, the one to take first."""
        if self.final:
            return [name for name in self.asked if name in bids and bids[name].feasible]
        return in_order(bids)


class Chooser(Protocol):
    def choose(self, file: JobFile, need: Need, heard: Mapping[str, Summary]) -> Chosen:
        """``need``: the job's. ``heard``: the summaries of the regions where something new may be placed."""


class ByRule:
    """``why``: why it stands in for a policy; None where it was asked for."""

    def __init__(self, why: str | None = None) -> None:
        self._why = None if why is None else f"by the rule, since {why}"

    def choose(self, file: JobFile, need: Need, heard: Mapping[str, Summary]) -> Chosen:
        CHOICES.labels("rule" if self._why is None else "stand-in").inc()
        return Chosen(worth_asking(need, heard), why=self._why)


class ByPolicy:
    def __init__(self, policy: RegionPolicy) -> None:
        self._policy = policy

    def choose(self, file: JobFile, need: Need, heard: Mapping[str, Summary]) -> Chosen:
        names, fits = sorted(heard), able(need, heard)
        if not fits:
            return Chosen([])
        seen = [about_region(need, file, heard[name]) for name in names]
        try:
            scores = self._policy.scores(seen, about_job(file), [name in fits for name in names])
        except PolicyError as error:
            log.warning("the policy cannot be asked: the rule chooses regions", reason=str(error))
            return ByRule(str(error)).choose(file, need, heard)
        CHOICES.labels("policy").inc()
        ranked = sorted(zip(scores, names, strict=True), key=lambda each: (-each[0], each[1]))
        return Chosen([name for _, name in ranked if name in fits][:MOST_ASKED], final=True, why=f"by {self._policy}")


def chooser(way: Way, file: Path | None) -> Chooser:
    """``file``: the policy's; None: the one that ships with this service. One that is refused leaves the choosing to
    the rule."""
    if way == "rule":
        if file is not None:
            log.warning("regions are chosen by the rule: CES_REGION_POLICY is left unread", file=str(file))
        return ByRule()
    try:
        policy = load_policy(file or SHIPPED)
    except PolicyError as error:
        log.error("the policy is refused: the rule chooses regions", reason=str(error))
        return ByRule(str(error))
    log.info("the policy is loaded", version=policy.version, sha256=policy.digest)
    return ByPolicy(policy)
