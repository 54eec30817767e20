"""The users that worker processes run as: one for each allocation, taken from a range of user ids."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Collection, Set
from pathlib import Path

from ces_common.names import short_hash
from ces_common.service import BadSetup
from ces_edge_agent import linux
from ces_edge_agent.ports import Refused

DEFAULT_UIDS = "1900000000-1900065535"  # no distribution, container engine or systemd gives these out
_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")
_LAST_UID = 2**32 - 2  # the one above means "no user" to the kernel
_NEEDED = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SETPCAP": 8,
    "SYS_ADMIN": 21,
}


def parse_uids(text: str) -> range:
    """The user ids that ``FIRST-LAST`` or a single number stands for. Raises ValueError."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"must be a range of user ids such as {DEFAULT_UIDS}, or a single one, not {text!r}")
    first, last = int(found[1]), int(found[2] or found[1])
    if first == 0:
        raise ValueError("must not contain 0: workers never run as root; begin with the id of an ordinary user")
    if not first <= last <= _LAST_UID:
        raise ValueError(f"must go from a lower to a higher user id, {_LAST_UID} at most, not {text!r}")
    return range(first, last + 1)


class WorkerUsers:
    """Gives each allocation a folder and a user who owns it. The folder's owner is the only record of that.

    An agent that is not root has no users to give: its workers run as itself.
    """

    def __init__(self, folder: Path, uids: range) -> None:
        self._folder = folder
        self._uids = uids
        self._lock = threading.Lock()
        self.own = os.geteuid() == 0
        """Whether workers run as other users than the agent."""

    @property
    def several(self) -> bool:
        """Whether each worker has a user of its own."""
        return self.own and len(self._uids) > 1

    def open(self) -> None:
        """Raises BadSetup where this agent is root and yet cannot give workers a user of their own."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.own:
            return
        held = linux.capabilities()
        missing = [name for name, bit in _NEEDED.items() if not held >> bit & 1]
        if missing:
            raise BadSetup(
                f"this agent is root without the capabilities {', '.join(missing)}, and so could only run workers as "
                "root, which it refuses: give it these, or run it as an ordinary user"
            )
        probe = self._folder / ".probe"
        probe.mkdir(exist_ok=True)
        try:
            for uid in (self._uids[0], self._uids[-1]):
                os.chown(probe, uid, uid)
        except OSError as error:
            raise BadSetup(
                f"CES_WORKER_UIDS: {self._uids[0]}-{self._uids[-1]} cannot own files in {self._folder} "
                f"({error.strerror}): name user ids that exist here, as /proc/self/uid_map lists them, and keep "
                "CES_STATE_DIR on a file system with owners"
            ) from error
        finally:
            probe.rmdir()

    def give(self, allocation: str, like: int | None = None, taken: Collection[int] = ()) -> tuple[Path, int, int]:
        """The allocation's folder, user and group. ``like``: the user that it is to have if it has none yet;
        ``taken``: users that no other allocation gets, unless all share one. Raises OSError, and Refused where no other
        user is left."""
        folder = self._folder / allocation
        if not self.own:
            folder.mkdir(exist_ok=True, mode=0o700)
            return folder, os.geteuid(), os.getegid()
        with self._lock:
            folder.mkdir(exist_ok=True, mode=0o700)
            uid = folder.stat().st_uid
            if uid not in self._uids:
                others = {entry.stat().st_uid for entry in os.scandir(self._folder)}
                known = like is not None and like in self._uids
                never = set(taken) if self.several else set[int]()
                uid = like if known and like else choose(self._uids, f"{self._folder}/{allocation}", others, never)
                os.chown(folder, uid, uid)
            return folder, uid, uid


def choose(uids: range, name: str, taken: set[int], never: Set[int] = frozenset()) -> int:
    """A user id for what is called ``name``: one that is not taken, if there is one, and never one of ``never``. The
    name decides where it looks first, so that agents that know nothing of each other rarely choose the same. Raises
    Refused."""
    start = int(short_hash(name), 16) % len(uids)
    for unfit in ({*taken, *never}, never):
        for place in range(start, start + len(uids)):
            if (uid := uids[place % len(uids)]) not in unfit:
                return uid
    raise Refused(
        f"all {len(uids)} users of CES_WORKER_UIDS own checkpoints of other jobs on this node: name more there"
    )
