"""The node's own keys for encrypted links, and how one replaces the other. Pure but for the file.

A key is replaced in steps, so that no connection is lost. The next key is told to the manager beside the current one,
and the manager tells both to the neighbours. Once the node's own document names it, so do theirs, and the node goes
over to it on trial. A neighbour gives the link to whichever of the two keys shook hands last. If all neighbours that
were there before do so soon, the next key becomes the current one; else the node goes back to the current one, which
they still know, and tries again later.

Two ends of a link must not try their next keys at once: each would shake hands by what the other uses no more. So of
neighbours who are about to, the one whose name comes first goes first.
"""

from __future__ import annotations

import json
import random
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import structlog
from nacl.public import PrivateKey

from ces_edge_agent.files import write_atomically

log = structlog.get_logger()
SETTLE_S: Final = 5.0  # for the neighbours to take up what they are told
QUIET_S: Final = 6.0  # since any handshake: the kernel begins no other within five seconds of the last
TRIAL_S: Final = 8.0  # time for a second handshake, where the first was lost
WAIT_S: Final = 300.0  # for neighbours who go first, or shake hands all the time: none keeps a node from its next key
RETRY_S: Final = 3600.0  # at least, and up to half as long again: so those who failed together do not meet again
ALIVE_S: Final = 180.0  # WireGuard ends a session that old


def new_key() -> str:
    """A private key, in base64."""
    return b64encode(PrivateKey.generate().encode()).decode()


def public_of(private: str) -> str:
    """Raises ValueError for what is no private key."""
    key = b64decode(private, validate=True)
    if len(key) != PrivateKey.SIZE:
        raise ValueError("a private key has 32 bytes")
    return b64encode(PrivateKey(key).public_key.encode()).decode()


@dataclass(frozen=True)
class Keys:
    """Private keys in base64. ``made_at``: when the current one came into use, by the time of day; ``next`` is empty
    while nothing replaces it."""

    current: str
    made_at: float
    next: str = ""

    @property
    def public(self) -> list[str]:
        """What neighbours are told."""
        return [public_of(key) for key in (self.current, self.next) if key]


class KeyFile:
    """Where they are kept, for this user alone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, now: float) -> Keys:
        """Made at the first call. Raises OSError, and ValueError for a file that somebody else wrote."""
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            keys = Keys(new_key(), now)
            self.save(keys)
            return keys
        try:
            keys = Keys(**json.loads(text))
            _ = keys.public, keys.made_at + 0.0
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self._path} holds no keys: delete it, so that new ones are made") from error
        return keys

    def save(self, keys: Keys) -> None:
        """Raises OSError."""
        write_atomically(self._path, json.dumps({"current": keys.current, "made_at": keys.made_at, "next": keys.next}))


@dataclass(frozen=True)
class _Trial:
    since: float
    awaited: frozenset[str]  # neighbours


class KeyRotation:
    """``life_s``: the age at which a key is replaced. All times are by the time of day, as WireGuard tells them.
    ``chance`` draws from 0 to 1."""

    def __init__(self, keys: Keys, life_s: float, chance: Callable[[], float] = random.random) -> None:
        self.keys, self._life_s, self._chance = keys, life_s, chance
        self._asked = False
        self._told_since: float | None = None
        self._not_before = 0.0
        self._trial: _Trial | None = None

    @property
    def in_use(self) -> str:
        """The private key that the device is to have."""
        return self.keys.next if self._trial is not None else self.keys.current

    @property
    def on_trial(self) -> bool:
        return self._trial is not None

    def ask(self) -> None:
        """Replace the key now, whatever its age."""
        self._asked, self._not_before = True, 0.0

    def look(self, now: float, told: Collection[str], shaken: Mapping[str, float], ahead: Collection[str] = ()) -> None:
        """Take the next step if it is time. ``told``: the public keys that the manager tells of this node; ``shaken``:
        neighbour -> when it last shook hands; ``ahead``: neighbours who are to replace their keys before this node."""
        if self._trial is not None:
            self._judge(self._trial, now, shaken)
        elif self.keys.next:
            self._wait(now, told, shaken, ahead)
        elif self._asked or now - self.keys.made_at >= self._life_s:
            self._asked, self._told_since = False, None
            self.keys = replace(self.keys, next=new_key())

    def _wait(self, now: float, told: Collection[str], shaken: Mapping[str, float], ahead: Collection[str]) -> None:
        if public_of(self.keys.next) not in told:
            self._told_since = None
            return
        self._told_since = now if self._told_since is None else self._told_since
        waited = now - max(self._told_since + SETTLE_S, self._not_before)
        there = frozenset(neighbour for neighbour, at in shaken.items() if now - at < ALIVE_S)
        free = there.isdisjoint(ahead) and all(not 0 <= now - at < QUIET_S for at in shaken.values())
        if waited >= WAIT_S or (waited >= 0 and free):
            self._trial = _Trial(now, there)

    def _judge(self, trial: _Trial, now: float, shaken: Mapping[str, float]) -> None:
        behind = sorted(each for each in trial.awaited if shaken.get(each, 0.0) < trial.since)
        if not behind:
            log.info("the key of the encrypted links is replaced")
            self.keys, self._trial = Keys(self.keys.next, now), None
        elif not 0 <= now - trial.since < TRIAL_S:
            log.warning("the key of the encrypted links is kept for now: neighbours do not know the next", of=behind)
            self._trial, self._not_before = None, now + RETRY_S * (1 + self._chance() / 2)
