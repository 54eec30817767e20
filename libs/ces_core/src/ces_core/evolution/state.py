"""Which version of a policy is live, which was before it, and what has happened: values, and how they change. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from ces_core.evolution.confidence import Interval

BASE = "base"
"""The policy that the scheduler was set up with, which is no version of the folder."""
KEPT = 200
"""Changes that are remembered."""


class StateError(ValueError):
    """A change that cannot be. The message says why, and what to do."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Change(_Part):
    """What happened to a version, when (Unix time), and why."""

    at_s: float
    what: str
    version: str
    why: str


class Version(_Part):
    """A candidate: the digest of its file, and what it has learned from: logged decisions up to ``learned_until_s``
    (Unix time), and synthetic ones."""

    name: str
    sha256: str
    policy: str
    made_s: float
    learned_until_s: float
    decisions: int
    synthetic: int
    seed: int


class Basis(_Part):
    """What the scheduler is set up with, beside any version: the name of its solver, the file of its policy (None: the
    solver's own), and a mark of both, which changes with the file."""

    solver: str
    policy: str | None
    mark: str


class State(_Part):
    """``former``: what was live before, which comes back if the live one is worse; ``returned``: versions that were
    taken back, which are no candidates any more. ``basis``: of the scheduler that began last, so that commands decide
    as it does."""

    kind: str = "ces-evolution"
    format: int = 1
    live: str = BASE
    former: str | None = None
    promoted_s: float | None = None
    frozen: bool = False
    returned: tuple[str, ...] = ()
    basis: Basis | None = None
    history: tuple[Change, ...] = ()

    def promoted(self, version: str, now_s: float, why: str) -> State:
        """With this version live. Raises StateError."""
        if self.frozen:
            raise StateError("evolution is frozen: ces evolve freeze --off lets it go on")
        if version == self.live:
            raise StateError(f"{version} is live already")
        known = {"live": version, "former": self.live, "promoted_s": now_s}
        known |= {"returned": tuple(each for each in self.returned if each != version)}
        return self.model_copy(update=known)._noted(now_s, "promoted", version, why)

    def rolled_back(self, now_s: float, why: str) -> State:
        """With the former version live, and the present one no candidate any more. Raises StateError."""
        if self.former is None:
            raise StateError(f"there is no former version to come back: {self.live} is live")
        gone = (*self.returned, self.live) if self.live != BASE else self.returned
        known = {"live": self.former, "former": None, "returned": gone}
        return self.model_copy(update=known)._noted(now_s, "rolled back", self.live, why)

    def with_frozen(self, frozen: bool, now_s: float, why: str) -> State:
        if frozen == self.frozen:
            return self
        what = "frozen" if frozen else "released"
        return self.model_copy(update={"frozen": frozen})._noted(now_s, what, self.live, why)

    def _noted(self, now_s: float, what: str, version: str, why: str) -> State:
        change = Change(at_s=now_s, what=what, version=version, why=why)
        return self.model_copy(update={"history": (*self.history, change)[-KEPT:]})


def candidate_of(state: State, versions: Sequence[Version]) -> Version | None:
    """The version that is compared with the live one: the newest that was neither live nor taken back."""
    past = {state.live, state.former, *state.returned}
    return max((each for each in versions if each.name not in past), key=lambda each: each.made_s, default=None)


def why_promoted(found: Interval) -> str:
    return f"gain {found}"
