"""What is logged is read again, within the bound; what is torn is left out, and what is foreign refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evolving_policies import MIB, NOON, decided, problems

from ces_core.evolution import decision_log
from ces_core.evolution.decision_log import (
    DecisionLog,
    DecisionLogError,
    SegmentReader,
    count_since,
    read_log,
    segments,
)
from ces_core.model.instance import read_instance, write_instance
from ces_core.model.problem import Problem
from ces_core.search.greedy import GREEDY

pytestmark = pytest.mark.usefixtures("policy_compiled")


def written(folder: Path, found: list[Problem], bound: int = MIB) -> DecisionLog:
    log = DecisionLog(folder, bound)
    for number, problem in enumerate(found):
        log.append(decided(f"j{number}.1", problem, NOON + number, GREEDY))
    return log


def some(count: int = 3) -> list[Problem]:
    return problems(range(3 * count), solver=GREEDY)[:count]


def test_a_problem_is_read_as_it_was_decided(tmp_path: Path) -> None:
    found = some()
    narrowed = found[0].allowed.copy()
    narrowed[0, :4] = False  # as where owners are expected
    narrowed.setflags(write=False)
    found.append(replace(found[0], allowed=narrowed, paths=3, basis="job"))
    written(tmp_path, found).close()
    log = read_log(tmp_path)
    assert log.torn == 0
    for problem, each in zip(found, log.decisions, strict=True):
        again = each.problem
        assert write_instance(again)["nodes"] == write_instance(problem)["nodes"]
        assert write_instance(again)["links"] == write_instance(problem)["links"]
        assert write_instance(again)["job"]["flows"] == write_instance(problem)["job"]["flows"]
        np.testing.assert_array_equal(again.allowed, problem.allowed)
        np.testing.assert_array_equal(again.demand, problem.demand)
        assert (again.paths, again.basis, again.weights) == (problem.paths, problem.basis, problem.weights)
        plan = GREEDY.solve(again, seed=1).plan
        assert plan is not None
        assert plan.assignments == each.line["assignments"]


def test_a_cluster_is_told_once_while_only_its_use_changes(tmp_path: Path) -> None:
    (problem,) = some(1)
    fuller = problem.cluster.with_used(problem.cluster.node_used * 1.01, problem.cluster.link_used + 1)
    written(tmp_path, [problem, replace(problem, cluster=fuller)]).close()
    (segment,) = segments(tmp_path)
    assert segment.read_text().count('"cluster":{') == 1
    first, second = read_log(tmp_path).decisions
    np.testing.assert_array_equal(second.problem.cluster.node_used, fuller.node_used)
    np.testing.assert_array_equal(first.problem.cluster.node_used, problem.cluster.node_used)


def test_the_log_stays_within_its_bound_and_the_newest_stays(tmp_path: Path) -> None:
    bound, (problem,) = 64 << 10, some(1)
    one = decided("j", problem, solver=GREEDY)
    log = DecisionLog(tmp_path, bound)
    for number in range(100):
        log.append(replace(one, name=f"j{number}", at_s=NOON + number))
        assert sum(each.stat().st_size for each in segments(tmp_path)) <= bound
    log.close()
    names = [each.name for each in read_log(tmp_path).decisions]
    assert names == [f"j{number}" for number in range(100 - len(names), 100)]
    assert 5 < len(names) < 100


def test_what_was_deleted_meanwhile_does_no_harm_and_later_decisions_are_counted(tmp_path: Path) -> None:
    written(tmp_path, some(2)).close()
    (problem,) = some(1)
    log = DecisionLog(tmp_path, MIB)
    log.append(decided("later", problem, NOON + 3600, GREEDY))
    log.close()
    assert [count_since(tmp_path, at_s) for at_s in (NOON, NOON + 1, NOON + 2, NOON + 3601)] == [3, 2, 1, 0]
    assert count_since(tmp_path / "nowhere", NOON) == 0


@pytest.mark.parametrize("lost", [1, 2, 60])
def test_a_torn_last_line_is_left_out_and_counted(tmp_path: Path, lost: int) -> None:
    written(tmp_path, some()).close()
    (segment,) = segments(tmp_path)
    segment.write_bytes(segment.read_bytes()[:-lost])
    log = read_log(tmp_path)
    assert ([each.name for each in log.decisions], log.torn) == (["j0.1", "j1.1"], 1)


def test_a_log_that_grows_is_read_on_and_a_line_only_when_it_is_whole(tmp_path: Path) -> None:
    log = written(tmp_path, some())
    (segment,) = segments(tmp_path)
    whole = segment.read_bytes()
    half = tmp_path / "half.log"
    half.write_bytes(whole[:-10])
    reader = SegmentReader(half)
    assert [each.name for each in reader.read()] == ["j0.1", "j1.1"]
    assert reader.torn
    half.write_bytes(whole)
    assert [each.name for each in reader.read()] == ["j2.1"]
    assert not reader.torn
    assert list(reader.read()) == []
    log.close()


def changed(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:2], lines[2].replace('"seed":1', '"seed":2'), *lines[3:]])


def lost(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:2], *lines[3:]])


@pytest.mark.parametrize(("spoil", "line"), [(changed, 3), (lost, 3)])
def test_a_line_that_was_changed_or_lost_is_found_and_named(tmp_path: Path, spoil: object, line: int) -> None:
    written(tmp_path, some(1) * 3).close()
    (segment,) = segments(tmp_path)
    segment.write_text(spoil(segment.read_text()))  # type: ignore[operator]
    with pytest.raises(DecisionLogError, match=f"{segment.name}: line {line} is not what was written there"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    "content", ["hello\n", '{"kind": "ces-decisions"}\n', "a diary, without any end of line", "\x00\n"]
)
def test_a_foreign_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "decisions-1.log").write_text(content)
    with pytest.raises(DecisionLogError, match=r"decisions-1\.log.*is no log of decisions of CES; move the file out"):
        read_log(tmp_path)


def test_a_log_of_another_format_is_refused(tmp_path: Path) -> None:
    text = json.dumps({"kind": "ces-decisions", "format": 2})
    (tmp_path / "decisions-1.log").write_text(f"{decision_log._digest('', text)} {text}\n")
    with pytest.raises(DecisionLogError, match="has format 2, and this version of CES reads 1"):
        read_log(tmp_path)


def test_a_problem_that_this_version_cannot_read_is_refused_where_it_stands(tmp_path: Path) -> None:
    log = written(tmp_path, some(1))
    log._write(read_log(tmp_path).decisions[0].line | {"name": "odd", "node_used": [[1.0]]})
    log.close()
    good, odd = read_log(tmp_path).decisions
    assert read_instance(good.instance).name == good.problem.name
    with pytest.raises(DecisionLogError, match="line 4: cannot be read by this version of CES"):
        _ = odd.problem


def test_a_folder_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    (problem,) = some(1)
    (tmp_path / "log").write_text("a file")
    log, one = DecisionLog(tmp_path / "log", MIB), decided("j", problem, solver=GREEDY)
    with pytest.raises(OSError, match="log"):
        log.append(one)
    (tmp_path / "log").unlink()
    log.append(one)
    log.close()
    assert [each.name for each in read_log(tmp_path / "log").decisions] == ["j"]
