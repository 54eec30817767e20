"""``ces-agent reclaim`` and ``ces-agent lend``: the owner's word, on the device itself, with no manager and no network.

The word is a file in the agent's state folder, which only root and the agent's user can write; the agent looks for it
ten times a second. ``reclaim`` stands until it is taken back, also over a restart; ``lend`` is obeyed once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Final, get_args

from ces_edge_agent.files import write_atomically
from ces_edge_agent.lending.decision import LONGEST_GRACE_S, Command
from ces_edge_agent.lending.record import record_file

PATIENCE_S: Final = 10.0
RECLAIMED: Final = f"reclaimed: what ran is frozen and ends within {LONGEST_GRACE_S:g} s, and nothing starts"
_LONGEST = 16  # bytes


def command_file(state_dir: Path) -> Path:
    return state_dir / "owner-command"


def give(state_dir: Path, command: Command) -> None:
    """Whoever says it, the agent's user can read it. Raises OSError."""
    agent = state_dir.stat()
    owner = None if agent.st_uid == os.geteuid() else (agent.st_uid, agent.st_gid)
    write_atomically(command_file(state_dir), command, mark=str(os.getpid()), owner=owner)


def given(state_dir: Path) -> Command | None:
    """The owner's word; None where there is none. Raises OSError where it cannot be read."""
    try:
        with command_file(state_dir).open("rb") as file:
            word = file.read(_LONGEST).decode(errors="replace").strip()
    except FileNotFoundError:
        return None
    return next((each for each in get_args(Command) if each == word), None)


def forget(state_dir: Path) -> None:
    """No word stands any more. Raises OSError."""
    command_file(state_dir).unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="ces-agent",
        description="What the owner of a lent device says to its agent, which obeys at once and asks nobody.",
    )
    parser.add_argument("command", choices=get_args(Command), help="have the device back, or lend it again")
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=Path(os.environ.get("CES_STATE_DIR", "/var/lib/ces-agent")),
        help="the agent's state folder (CES_STATE_DIR)",
    )
    asked = parser.parse_args(arguments)
    record = record_file(asked.state_dir)
    try:
        if not record.exists():
            print(
                f"error: {asked.state_dir} is the folder of no agent that lends its device: name it by --state-dir, "
                "and run the agent with CES_LENT=true",
                file=sys.stderr,
            )
            return 2
        give(asked.state_dir, asked.command)
    except PermissionError:
        print(f"error: only root and the agent's user may write to {asked.state_dir}", file=sys.stderr)
        return 2
    return _await_agent(record, asked.command)


def _await_agent(record: Path, command: Command) -> int:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            if json.loads(record.read_text())["lent"] is (command == "lend"):
                print("lent" if command == "lend" else RECLAIMED)
                return 0
        except (OSError, ValueError, KeyError):
            pass
        time.sleep(0.05)
    print(f"error: no agent has obeyed for {PATIENCE_S:g} s: is it running? It obeys when it starts.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
