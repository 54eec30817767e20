"""Tells whoever looks which versions of an evolving policy there are, and what is known of them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from ces_common.bus.port import Message, RequestHandler
from ces_common.messages.policies import (
    MOST_CHANGES,
    MOST_VERSIONS,
    PolicyAnswer,
    PolicyChange,
    PolicyGain,
    PolicyVersion,
)
from ces_core.evolution.confidence import interval
from ces_core.evolution.gate import Pairs, Verdict
from ces_core.evolution.standing import Comparisons, Standing, role_of, standing
from ces_core.evolution.state import Version
from ces_scheduler.live_policy import LivePolicy

log = structlog.get_logger()
FRESH_S = 2.0
"""An answer serves everybody for so long."""
UNREADABLE = "the folder of versions cannot be read: the scheduler's log says why"  # where it is, viewers need not know


def telling(live: LivePolicy | None, now: Callable[[], float] = time.time) -> RequestHandler:
    """Answers a PolicyQuery. ``live``: None where no policy evolves. ``now``: Unix time."""
    folder = None if live is None else live.folder
    if folder is None:
        return _none
    pairs = Comparisons(folder, MOST_VERSIONS + 1)
    reading = asyncio.Lock()
    told, until = b"", -math.inf

    def read() -> bytes:
        try:
            return answer_of(standing(folder, now(), pairs, MOST_VERSIONS)).encode()
        except (OSError, ValueError, OverflowError) as error:  # FolderError among them, and what no answer can say
            log.error("the versions of the policy cannot be told", reason=type(error).__name__, folder=str(folder.path))
            return PolicyAnswer(evolves=True, remark=UNREADABLE).encode()

    async def answer(_: Message) -> bytes:
        nonlocal told, until
        async with reading:  # many who look at once cost no more than one
            if time.monotonic() >= until:
                told = await asyncio.to_thread(read)
                until = time.monotonic() + FRESH_S
            return told

    return answer


async def _none(_: Message) -> bytes:
    return PolicyAnswer().encode()


def answer_of(known: Standing) -> PolicyAnswer:
    """The newest versions and changes first."""
    state = known.state
    return PolicyAnswer(
        evolves=True,
        live=state.live,
        former=state.former,
        frozen=state.frozen,
        promoted_at=None if state.promoted_s is None else _time(state.promoted_s),
        solver=None if state.basis is None else state.basis.solver,
        versions=[_version(known, each) for each in reversed(known.versions)],
        changes=[
            PolicyChange(at=_time(each.at_s), what=each.what, version=each.version, why=each.why)
            for each in reversed(state.history[-MOST_CHANGES:])
        ],
    )


def _version(known: Standing, version: Version) -> PolicyVersion:
    role, verdict = role_of(known, version.name), known.verdicts[version.name]
    gain = _gain(known.watched) if role == "live" and known.watched is not None else _of(verdict)
    return PolicyVersion.model_validate(
        {
            **version.model_dump(include={"name", "policy", "decisions", "synthetic"}),
            "role": role,
            "made_at": _time(version.made_s),
            "learned_until": _time(version.learned_until_s),
            "gain": gain,
            "against": list(verdict.against) if role == "candidate" else [],
        }
    )


def _gain(pairs: Pairs) -> PolicyGain | None:
    return _of(Verdict(interval(pairs.gains), int(pairs.refused.sum()), pairs.slower, ()))


def _of(verdict: Verdict) -> PolicyGain | None:
    found = verdict.interval
    if not found.count:
        return None
    return PolicyGain(
        decisions=found.count,
        mean=found.mean,
        low=found.low,
        high=found.high,
        refused=verdict.refused,
        slower=verdict.slower,
    )


def _time(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)
