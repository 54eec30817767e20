"""Decisions of single jobs on record: the problem as it was decided, the plan, its score, and who decided.

A log is a folder of segments. Each line of a segment is a digest, a space and a JSON object; the digest covers the
object and the line before, so that a line which was changed, lost or put elsewhere is found. It proves no origin:
whoever may write to the folder may write a log. A segment tells of a cluster once, and of each decision what was in
use. The oldest segments are deleted so that all together stay within a bound.

What a log does not tell: values of GPU cards (``Problem.card_value``), which the instance format has no words for.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance, write_instance
from ces_core.model.parts import Node, Task
from ces_core.model.problem import RESOURCES, Cluster, Problem

KIND, FORMAT = "ces-decisions", 1
PATTERN = "decisions-*.log"
SEGMENTS = 8
"""A segment is closed at this part of the bound, so that little is lost when the oldest goes."""
DIGITS = 16
LONGEST_LINE = 64 << 20
NOWHERE = Cluster.make([Node("nowhere")], [])
"""Stands for a cluster where only the job of a problem is written."""
Line = dict[str, Any]


class DecisionLogError(ValueError):
    """A file that is no whole decision log. The message says which, where, and what to do."""


@dataclass(frozen=True, eq=False)
class Decided:
    """One decision, to be written. ``name``: unique; ``at_s``: Unix time; ``policy``: the version that was asked, if
    any; ``fragmentation_aware``: what is left for later jobs counted, beside the composite; ``ms``: the time that it
    took."""

    name: str
    at_s: float
    problem: Problem
    seed: int
    time_limit_s: float | None
    solver: str
    policy: str | None
    fragmentation_aware: bool
    composite: float
    ms: float
    assignments: Mapping[str, str]
    flows: list[Line]


@dataclass(frozen=True, eq=False)
class Logged:
    """One decision, as it was read. Only its text is kept: the rest is made each time that it is asked for, so that a
    whole log takes no more memory than its files."""

    name: str
    at_s: float
    text: str
    cluster: Line
    where: str

    @property
    def line(self) -> Line:
        return json.loads(self.text)  # type: ignore[no-any-return]

    @property
    def instance(self) -> Line:
        """In the format of ``ces solve``. Raises DecisionLogError."""
        line = self.line
        try:
            nodes = [
                node | {f"{resource}_used": line["node_used"][r][n] for r, resource in enumerate(RESOURCES)}
                for n, node in enumerate(self.cluster["nodes"])
            ]
            links = [
                link | {"bandwidth_used": used}
                for link, used in zip(self.cluster["links"], line["link_used"], strict=True)
            ]
            asked = {key: line[key] for key in ("job", "weights")}
            return {"nodes": nodes, "links": links, "media": self.cluster["media"]} | asked
        except (ValueError, TypeError, LookupError) as error:
            raise self._unreadable(error) from error

    @property
    def problem(self) -> Problem:
        """Raises DecisionLogError."""
        line, instance = self.line, self.instance
        try:
            how = {key: line[key] for key in ("basis", "paths", "path_metric")}
            return read_instance(instance, **how)
        except (ProblemError, ValueError, TypeError, LookupError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> DecisionLogError:
        return DecisionLogError(f"{self.where}: cannot be read by this version of CES: {error}")


class DecisionLog:
    """Appends decisions to a log. ``bound``: of all segments together, in bytes. Raises OSError where the folder cannot
    be written; the segment is then closed, and the next decision begins another."""

    def __init__(self, folder: Path, bound: int) -> None:
        self.folder, self.bound = folder, bound
        self._file: IO[bytes] | None = None
        self._written = 0
        self._digest = ""
        self._cluster: Cluster | None = None
        self._clusters = 0

    def append(self, decided: Decided) -> None:
        try:
            if self._file is None or self._written >= self.bound // SEGMENTS:
                self._begin(decided.at_s)
            if self._cluster is None or not _same(self._cluster, decided.problem.cluster):
                self._cluster, self._clusters = decided.problem.cluster, self._clusters + 1
                self._write({"cluster": cluster_line(decided.problem.cluster)})
            self._write(_decision_line(decided, self._clusters))
            assert self._file is not None
            self._file.flush()
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """What was written by then is whole."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # its last line is torn, which readers pass over
                file.close()

    def _begin(self, at_s: float) -> None:
        self.close()
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"decisions-{int(at_s * 1000):015d}-{secrets.token_hex(4)}.log"
        self._file = (self.folder / name).open("xb")
        self._written, self._digest, self._cluster, self._clusters = 0, "", None, 0
        self._write({"kind": KIND, "format": FORMAT})
        kept = 0
        for segment in reversed(segments(self.folder)):
            try:
                kept += segment.stat().st_size
                if kept > self.bound - self.bound // SEGMENTS and segment.name != name:
                    segment.unlink()
            except FileNotFoundError:
                continue  # another scheduler that writes to the folder was quicker

    def _write(self, line: Line) -> None:
        assert self._file is not None
        text = json.dumps(line, separators=(",", ":"))
        self._digest = _digest(self._digest, text)
        data = f"{self._digest} {text}\n".encode()
        self._file.write(data)
        self._written += len(data)


class SegmentReader:
    """Reads a segment as far as it has been written, and goes on from there when it is asked again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0
        self._number = 0
        self._digest = ""
        self._clusters: list[Line] = []
        self.torn = False
        """Whether the file ended within a line when it was last read."""

    def read(self) -> Iterator[Logged]:
        """The decisions since the last call. Raises DecisionLogError, and OSError."""
        with self.path.open("rb") as file:
            file.seek(self._at)
            while data := file.readline(LONGEST_LINE):
                self.torn = not data.endswith(b"\n")
                if self.torn:
                    self._check_begun(data)
                    return
                found = self._line(data)
                self._at += len(data)
                if found is not None:
                    yield found

    def _line(self, data: bytes) -> Logged | None:
        self._number += 1
        where = f"{self.path}: line {self._number}"
        try:
            digest, _, text = data.decode().rstrip("\n").partition(" ")
            line = json.loads(text)
        except ValueError:
            raise self._wrong(where) from None
        if self._number == 1 and not (isinstance(line, dict) and line.get("kind") == KIND):
            raise self._wrong(where)
        if digest != _digest(self._digest, text):
            raise DecisionLogError(
                f"{where} is not what was written there: the file was changed or damaged; move it away"
            )
        self._digest = digest
        if self._number == 1:
            if line.get("format") != FORMAT:
                raise DecisionLogError(
                    f"{self.path}: has format {line.get('format')!r}, and this version of CES reads {FORMAT}"
                )
            return None
        if "cluster" in line and "job" not in line:
            self._clusters.append(line["cluster"])
            return None
        try:
            name, at_s, cluster = str(line["name"]), float(line["at"]), self._clusters[line["cluster"] - 1]
            return Logged(name, at_s, text, cluster, where)
        except (LookupError, TypeError, ValueError):
            raise self._wrong(where) from None

    def _check_begun(self, data: bytes) -> None:
        """A foreign file has no line that is torn, but one that never was ours."""
        begun = f"{'0' * DIGITS} {{".encode()
        if self._number == 0 and len(data) > len(begun) and data[DIGITS : len(begun)] != begun[DIGITS:]:
            raise self._wrong(str(self.path))

    @staticmethod
    def _wrong(where: str) -> DecisionLogError:
        return DecisionLogError(f"{where}: is no log of decisions of CES; move the file out of the folder")


@dataclass(frozen=True, eq=False)
class WholeLog:
    """All decisions of a log, in the order of their times. ``torn``: segments whose last line was not written whole,
    and is left out."""

    decisions: list[Logged]
    torn: int


def read_log(folder: Path) -> WholeLog:
    """Raises DecisionLogError, and OSError."""
    decisions, torn = [], 0
    for segment in segments(folder):
        reader = SegmentReader(segment)
        decisions += list(reader.read())
        torn += reader.torn
    return WholeLog(sorted(decisions, key=lambda each: each.at_s), torn)


def count_since(folder: Path, at_s: float) -> int:
    """How many decisions were made from then on (Unix time), of those that are still on record. Raises
    DecisionLogError, and OSError."""
    count = 0
    for segment in reversed(segments(folder)):
        times = [each.at_s for each in SegmentReader(segment).read()]
        count += sum(each >= at_s for each in times)
        if times and times[0] < at_s:
            break
    return count


def segments(folder: Path) -> list[Path]:
    """From the oldest to the newest."""
    return sorted(folder.glob(PATTERN))


def cluster_line(cluster: Cluster) -> Line:
    """A cluster without what is in use."""
    written = write_instance(Problem.make(cluster, [Task("nobody")]))
    used = {f"{resource}_used" for resource in RESOURCES}
    return {
        "nodes": [{key: value for key, value in node.items() if key not in used} for node in written["nodes"]],
        "links": [{key: value for key, value in link.items() if key != "bandwidth_used"} for link in written["links"]],
        "media": written["media"],
    }


def _decision_line(decided: Decided, cluster: int) -> Line:
    problem = decided.problem
    asked = write_instance(replace(problem, cluster=NOWHERE))
    return {
        "name": decided.name,
        "at": decided.at_s,
        "cluster": cluster,
        "node_used": problem.cluster.node_used.tolist(),
        "link_used": problem.cluster.link_used.tolist(),
        "job": asked["job"] | {"tasks": _tasks(problem, asked["job"]["tasks"])},
        "weights": asked["weights"],
        "basis": problem.basis,
        "paths": problem.paths,
        "path_metric": problem.path_metric,
        "seed": decided.seed,
        "time_limit_s": decided.time_limit_s,
        "solver": decided.solver,
        "policy": decided.policy,
        "fragmentation_aware": decided.fragmentation_aware,
        "composite": decided.composite,
        "ms": round(decided.ms, 3),
        "assignments": dict(decided.assignments),
        "flows": decided.flows,
    }


def _tasks(problem: Problem, written: list[Line]) -> list[Line]:
    """The tasks with the nodes that were left to them: callers of a solver may have ruled out some."""
    usable = (problem.cluster.node_capacity > 0).any(axis=0)
    names = problem.cluster.topology.nodes
    return [
        task | {"allowed": None if (row == usable).all() else [names[n] for n in np.flatnonzero(row)]}
        for task, row in zip(written, problem.allowed, strict=True)
    ]


def _same(one: Cluster, other: Cluster) -> bool:
    """Whether two clusters are the same but for what is in use."""
    if one is other:
        return True
    capacities = ("node_capacity", "link_capacity", "medium_capacity")
    alike = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in capacities)
    return one.topology is other.topology and one.profile is other.profile and alike


def _digest(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}{text}".encode()).hexdigest()[:DIGITS]
