"""The folder of an evolving policy: the log of decisions, versions, what was found of them, and which one is live.

Scheduler, its shadow and ``ces evolve`` share it. The state is one file, written whole or not at all, and changed under
a lock; a version's file is believed only with the digest that it was added with.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ces_core.evolution.pairing import Pair
from ces_core.evolution.state import BASE, Basis, State, Version

STATE, LOCK, ABOUT, POLICY, CARD = "state.json", "lock", "version.json", "policy.onnx", "model-card.json"
MOST_PAIRS = 20_000
"""Decisions of one comparison; further ones are not made."""
M = TypeVar("M", bound=BaseModel)


class FolderError(ValueError):
    """The folder, or a file in it, cannot be used. The message says which, why, and what to do."""


@dataclass(frozen=True)
class EvolutionFolder:
    path: Path

    @property
    def log(self) -> Path:
        return self.path / "log"

    def existing(self) -> EvolutionFolder:
        """Itself. Raises FolderError where there is nothing."""
        if not self.path.is_dir():
            raise FolderError(f"{self.path}: is no folder of an evolving policy; name the one in CES_EVOLUTION")
        return self

    # Which version is live

    def state(self) -> State:
        """Raises FolderError."""
        file = self.path / STATE
        if not file.exists():
            return State()
        found = _read(file, State)
        if found.kind != "ces-evolution" or found.format != 1:
            raise FolderError(f"{file}: is of another program or version: {found.kind} {found.format}")
        return found

    def change(self, change: Callable[[State], State]) -> State:
        """The state as ``change`` leaves it, which nobody else changes meanwhile. Raises FolderError, OSError and what
        ``change`` raises."""
        with self._locked():
            before = self.state()
            after = change(before)
            if after != before:
                _write_whole(self.path / STATE, after.model_dump_json(indent=2) + "\n")
            return after

    # Versions

    def versions(self) -> list[Version]:
        """From the oldest to the newest. Raises FolderError."""
        found = [_read(file, Version) for file in (self.path / "versions").glob(f"v*/{ABOUT}")]
        return sorted(found, key=lambda each: each.made_s)

    def version(self, name: str) -> Version:
        """Raises FolderError."""
        known = {each.name: each for each in self.versions()}
        if name not in known:
            raise FolderError(f"there is no version {name!r}; known: {', '.join(known) or 'none yet'}")
        return known[name]

    def policy(self, name: str) -> Path | None:
        """The version's file, the same as when it was added; that of the base, None for the solver's own. Raises
        FolderError."""
        if name == BASE:
            basis = self.state().basis
            return None if basis is None or basis.policy is None else Path(basis.policy)
        version = self.version(name)
        file = self.path / "versions" / name / POLICY
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise FolderError(f"{file}: {error.strerror or error}") from error
        if digest != version.sha256:
            raise FolderError(f"{file}: is not the file of {name} any more: its digest is {digest[:12]}")
        return file

    def add(self, file: Path, card: Mapping[str, Any], **about: Any) -> Version:
        """A version of this file, named v1, v2, and so on. ``about``: its other fields. Raises OSError."""
        with self._locked():
            folder = self.path / "versions"
            folder.mkdir(parents=True, exist_ok=True)
            taken = [int(each.name[1:]) for each in folder.iterdir() if each.name[1:].isdigit()]
            name = f"v{max(taken, default=0) + 1}"
            part = folder / f".{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            shutil.copyfile(file, part / POLICY)
            digest = hashlib.sha256((part / POLICY).read_bytes()).hexdigest()
            version = Version(name=name, sha256=digest, **about)
            (part / CARD).write_text(json.dumps(card, indent=2) + "\n")
            (part / ABOUT).write_text(version.model_dump_json(indent=2) + "\n")
            part.replace(folder / name)
            return version

    # What was found of them

    def candidacy(self, one: str, state: State) -> Path:
        """The file of a candidate's decisions beside the live one's, by the scheduler's present solver."""
        return self.path / "pairs" / f"{one}-over-{state.live}-by-{_mark(state)}.jsonl"

    def watch(self, state: State) -> Path:
        """That of the live one's decisions since its promotion beside the former one's."""
        return self.path / "pairs" / f"{state.live}-over-{state.former}-since-{int(state.promoted_s or 0)}.jsonl"

    def pairs(self, file: Path) -> list[Pair]:
        """Each decision once. A last line that was not written whole is left out. Raises FolderError."""
        if not file.exists():
            return []
        lines = file.read_text(encoding="utf-8").split("\n")
        found: dict[str, Pair] = {}
        for number, line in enumerate(lines[:-1], 1):
            try:
                entry = json.loads(line)
                pair = Pair(entry["name"], float(entry["gain"]), bool(entry["refused"]), tuple(entry["ms"]))
            except (ValueError, TypeError, LookupError):
                raise FolderError(f"{file}: line {number} is no comparison; delete the file to compare again") from None
            found.setdefault(pair.name, pair)
        return list(found.values())

    def keep(self, file: Path, found: Iterable[Pair]) -> None:
        """Raises OSError."""
        text = "".join(json.dumps(asdict(each)) + "\n" for each in found)
        with self._locked():
            file.parent.mkdir(parents=True, exist_ok=True)
            _end_line(file)
            with file.open("a", encoding="utf-8") as stream:
                stream.write(text)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def basis_of(solver: str, policy: Path | None) -> Basis:
    """Of this solver with this file. Raises FolderError where it cannot be read."""
    try:
        content = b"" if policy is None else policy.read_bytes()
    except OSError as error:
        raise FolderError(f"{policy}: {error.strerror or error}") from error
    mark = f"{solver}-{hashlib.sha256(content).hexdigest()[:8]}" if content else solver
    return Basis(solver=solver, policy=None if policy is None else str(policy.resolve()), mark=mark)


def _mark(state: State) -> str:
    return "none" if state.basis is None else state.basis.mark


def _read(file: Path, model: type[M]) -> M:
    try:
        return model.model_validate_json(file.read_bytes())
    except OSError as error:
        raise FolderError(f"{file}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise FolderError(f"{file}: {field + ': ' if field else ''}{first['msg']}; move the file away") from error


def _write_whole(file: Path, text: str) -> None:
    """Whole or not at all, also after a loss of power."""
    part = file.with_suffix(".part")
    with part.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(file)


def _end_line(file: Path) -> None:
    """Cut off what a killed writer has left of a line."""
    if not file.exists() or not file.stat().st_size:
        return
    with file.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        whole = stream.read() == b"\n"
    if not whole:
        os.truncate(file, file.read_bytes().rfind(b"\n") + 1)
