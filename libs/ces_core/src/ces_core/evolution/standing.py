"""What is known of the versions of an evolving policy, read from its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ces_core.evolution.folder import EvolutionFolder
from ces_core.evolution.gate import Pairs, Verdict, judged
from ces_core.evolution.pairing import pairs_of
from ces_core.evolution.state import State, Version, candidate_of


@dataclass(frozen=True)
class Standing:
    """``versions``: from the oldest to the newest; ``verdicts``: by name, each beside the live version; ``watched``:
    the live one's decisions since its promotion beside the former one's, None where there is no former one."""

    state: State
    versions: tuple[Version, ...]
    verdicts: Mapping[str, Verdict]
    watched: Pairs | None

    @property
    def candidate(self) -> Version | None:
        return candidate_of(self.state, self.versions)


class Comparisons:
    """The comparisons in a folder, each read again only once it has grown; ``most`` are remembered."""

    def __init__(self, folder: EvolutionFolder, most: int) -> None:
        self._folder, self._most = folder, most
        self._known: dict[Path, tuple[int, Pairs]] = {}

    def __call__(self, file: Path) -> Pairs:
        """Raises FolderError."""
        size = file.stat().st_size if file.exists() else 0
        known = self._known.pop(file, None)
        if known is None or known[0] != size:
            known = size, pairs_of(self._folder.pairs(file))
        self._known[file] = known
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return known[1]


def standing(
    folder: EvolutionFolder, now_s: float, pairs: Callable[[Path], Pairs] | None = None, most: int | None = None
) -> Standing:
    """Of the newest ``most`` versions, or all. ``pairs``: what reads a comparison. Raises FolderError."""

    def read(file: Path) -> Pairs:
        return pairs_of(folder.pairs(file))

    pairs = pairs or read
    state, versions = folder.state(), folder.versions()[-most if most else None :]
    verdicts = {each.name: _verdict(pairs(folder.candidacy(each.name, state)), state, now_s) for each in versions}
    watched = None if state.former is None else pairs(folder.watch(state))
    return Standing(state, tuple(versions), verdicts, watched)


def verdict_on(folder: EvolutionFolder, state: State, version: str, now_s: float) -> Verdict:
    """What is known of a version beside the live one. Raises FolderError."""
    return _verdict(pairs_of(folder.pairs(folder.candidacy(version, state))), state, now_s)


def _verdict(pairs: Pairs, state: State, now_s: float) -> Verdict:
    return judged(pairs, frozen=state.frozen, promoted_s=state.promoted_s, now_s=now_s)


def role_of(known: Standing, version: str) -> str:
    """What a version does now: ``live``, ``shadow``, ``taken back``, ``candidate``, or ``passed over``: a newer one is
    the candidate."""
    state, candidate = known.state, known.candidate
    if version == state.live:
        return "live"
    if version == state.former:
        return "shadow"
    if version in state.returned:
        return "taken back"
    return "candidate" if candidate is not None and candidate.name == version else "passed over"
