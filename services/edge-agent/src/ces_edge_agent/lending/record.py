"""How things stand with a lent device, kept on disk: an agent that starts again neither ends what runs nor forgets for
how long the owner must be quiet."""

from __future__ import annotations

import json
from pathlib import Path

import structlog

from ces_edge_agent.files import write_atomically
from ces_edge_agent.lending.decision import Rules, Standing

log = structlog.get_logger()


def record_file(state_dir: Path) -> Path:
    return state_dir / "lent.json"


def store(path: Path, standing: Standing, boot: str) -> None:
    try:
        write_atomically(path, json.dumps({"boot": boot, "lent": standing.lent, "quiet_s": standing.quiet_s}))
    except OSError as error:  # the owner matters more than the record
        log.warning("a restart would not know how things stand with the owner", error=str(error))


def load(path: Path, rules: Rules, boot: str, now: float) -> Standing:
    """``boot``: names the present boot. A device that has booted meanwhile is its owner's until that one is quiet."""
    try:
        kept = json.loads(path.read_text())
        quiet_s = min(max(float(kept["quiet_s"]), rules.quiet_s), rules.longest_quiet_s)
        return Standing(lent=kept["lent"] is True and kept["boot"] == boot, quiet_s=quiet_s, calm_since=now)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("an unreadable record of the loan is ignored", path=str(path), error=str(error))
    return Standing(lent=False, quiet_s=rules.quiet_s)
