"""How much work the tasks of a job do for each step, and what that takes on other nodes."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from ces_common.messages.base import Message
from ces_common.messages.scores import Kind

Class = Kind
"""A class of work: the kind of measurement by which nodes are taken to differ for it."""
POORLY_KNOWN: Final = 0.25
"""What was predicted for a job was wrong by more than this share: people are warned."""
MOST_CLASSES: Final = 8
Ms = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Span(Message):
    """A time in ms, and between which two it lies."""

    ms: Ms
    low: Ms
    high: Ms


class ClassWork(Message):
    """``work``: ms of the reference core for each step, if the work is of this class. ``error``: by which share the CPU
    time of finished jobs differed from what this class predicted, the last ones counting most; None before a second
    one."""

    work: Ms
    error: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class LearnedWork(Message):
    """What jobs of one name have taught of one group of their tasks. ``runs``: on how many nodes jobs of it ran, each
    time counting; ``job``: the last of these jobs."""

    runs: Annotated[int, Field(ge=1)]
    job: str
    classes: Annotated[dict[Class, ClassWork], Field(max_length=MOST_CLASSES)]

    @property
    def error(self) -> float | None:
        """Of the class that has predicted best."""
        return min((each.error for each in self.classes.values() if each.error is not None), default=None)


class SeenWork(Message):
    """What tasks of a group were seen to take on a node. ``cpu``: of CPU time for each step; ``step``: ms from one step
    to the next, however that was spent; ``cores``: of which the tasks had so many at most."""

    node: str
    tasks: Annotated[int, Field(ge=1)]
    steps: Annotated[int, Field(ge=1)]
    cpu: Span
    step: Ms
    cores: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PredictedWork(Message):
    """What a step is predicted to take on another node: ``cpu``, of CPU time; ``step``, from one step to the next, if
    it waits as long there; None where no task runs by which that is known. ``classes``: by which it is predicted."""

    node: str
    cpu: Span
    step: Span | None = None
    classes: list[Class]


class GroupProfile(Message):
    """Of the tasks of one group. ``classes``: the work by each class that it may be of, with the error of that class so
    far. ``doubts``: what is not known, in words."""

    group: str
    seen: list[SeenWork] = []
    runs: int = 0
    classes: dict[Class, ClassWork] = {}
    predicted: list[PredictedWork] = []
    doubts: list[str] = []


class JobProfile(Message):
    job: str
    name: str
    groups: list[GroupProfile] = []
