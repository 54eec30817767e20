"""The work of a step, and what it takes on another node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.scores import Kind, Measurement
from ces_common.messages.work import ClassWork, SeenWork, Span
from ces_common.scores import REFERENCE
from ces_common.work import NodeSpeeds, cores_for, learned, predicted, speeds_of, threads_of, trusted, work_of

TIMES = st.floats(0.01, 1e4)
SPEEDS = st.floats(0.05, 20)


def measurement(kind: Kind, speed: float, given: float, threads: int = 1, cores: str = "") -> Measurement:
    """A core of this speed while it works, of which ``given`` were there."""
    per_cpu_s = speed * REFERENCE[kind]
    rates = [per_cpu_s * given] * 5
    return Measurement(kind=kind, threads=threads, cores=cores, rates=rates, per_cpu_s=per_cpu_s, source="a test")


def node(integer: float = 1.0, memory: float = 1.0, one: float = 1.0, many: float = 4.0) -> NodeSpeeds:
    return NodeSpeeds({"integer": integer, "memory": memory}, one, many)


def seen(cpu: float = 10.0, step: float = 10.0, cores: float = 4.0, vary: float = 0.0) -> SeenWork:
    span = Span(ms=cpu, low=cpu * (1 - vary), high=cpu * (1 + vary))
    return SeenWork(node="here", tasks=1, steps=100, cpu=span, step=step, cores=cores)


def classes(cpu: float, here: NodeSpeeds, **errors: float) -> dict[Kind, ClassWork]:
    return {kind: ClassWork(work=work, error=errors.get(kind)) for kind, work in work_of(cpu, here).items()}


def test_a_quota_changes_what_threads_are_given_and_not_how_fast_a_core_is() -> None:
    whole, half = (
        speeds_of([measurement("integer", 2.0, given), measurement("integer", 2.0, many, threads=4)])
        for given, many in ((0.99, 3.9), (0.5, 0.5))
    )
    assert whole is not None
    assert half is not None
    assert whole.cores == half.cores == {"integer": pytest.approx(2.0)}
    assert (whole.one, whole.many) == (pytest.approx(0.99), pytest.approx(3.9))
    assert (half.one, half.many) == (pytest.approx(0.5), pytest.approx(0.5))


def test_the_fastest_type_of_core_counts_and_the_least_disturbed_measurement() -> None:
    found = speeds_of(
        [
            measurement("integer", 0.5, 1.0, cores="cpu_atom"),
            measurement("integer", 1.5, 1.0, cores="cpu_core"),
            measurement("float", 1.0, 0.6),
            measurement("network", 1.0, 9.0),
        ]
    )
    assert found == NodeSpeeds({"integer": pytest.approx(1.5), "float": pytest.approx(1.0)}, 1.0, 1.0)


def test_an_agent_that_tells_no_cpu_time_tells_no_speed() -> None:
    assert speeds_of([Measurement(kind="integer", rates=[1.0, 1.0], source="an older one")]) is None
    assert speeds_of([]) is None


@given(cpu=TIMES, integer=SPEEDS, memory=SPEEDS)
def test_where_it_was_seen_the_same_is_predicted(cpu: float, integer: float, memory: float) -> None:
    here, told = node(integer, memory), seen(cpu, step=cpu)
    found = predicted("here", classes(cpu, here), here, told, here)
    assert found is not None
    assert found.step is not None
    assert (found.cpu.ms, found.step.ms) == (pytest.approx(cpu), pytest.approx(cpu))
    assert found.classes == ["integer", "memory"]


@given(cpu=TIMES, speeds=st.tuples(SPEEDS, SPEEDS), vary=st.floats(0, 0.5), error=st.floats(0, 2))
def test_the_interval_spans_all_trusted_classes(
    cpu: float, speeds: tuple[float, float], vary: float, error: float
) -> None:
    here, there = node(), node(*speeds)
    found = predicted("there", classes(cpu, here, integer=error, memory=error), there, seen(cpu, vary=vary), here)
    assert found is not None
    for speed in speeds:
        assert found.cpu.low <= cpu / speed * (1 + 1e-9)
        assert found.cpu.high >= cpu / speed * (1 - 1e-9)
    assert found.cpu.low <= found.cpu.ms * (1 + 1e-9)
    assert found.cpu.ms <= found.cpu.high * (1 + 1e-9)


def test_the_class_that_has_predicted_best_is_trusted() -> None:
    here, there = node(), node(integer=2.0, memory=0.5)
    known = classes(10.0, here, integer=0.03, memory=0.4)
    assert trusted(known, there.cores) == ["integer"]
    found = predicted("there", known, there, seen(), here)
    assert found is not None
    assert (found.cpu.ms, found.classes) == (pytest.approx(5.0), ["integer"])
    assert (found.cpu.low, found.cpu.high) == (pytest.approx(5.0 * 0.97), pytest.approx(5.0 * 1.03))
    assert trusted(known, ["memory"]) == ["memory"], "where only that was measured"
    assert predicted("there", known, NodeSpeeds({"matrix": 1.0}, 1, 1), seen(), here) is None


def test_a_busy_task_takes_longer_where_it_gets_fewer_cores_and_waiting_does_not() -> None:
    here, half = node(), node(one=0.5, many=0.5)
    busy = predicted("half", classes(10, here), half, seen(cpu=10, step=10), here)
    waiting = predicted("half", classes(10, here), half, seen(cpu=10, step=40), here)
    assert busy is not None
    assert busy.step is not None
    assert waiting is not None
    assert waiting.step is not None
    assert (busy.cpu.ms, busy.step.ms) == (pytest.approx(10), pytest.approx(20))
    assert waiting.step.ms == pytest.approx(30 + 20)


def test_the_cores_that_a_task_may_use_hold_everywhere() -> None:
    here = node()
    limited = seen(cpu=10, step=40, cores=0.25)
    found = predicted("there", classes(10, here), node(integer=2.0, memory=2.0), limited, here)
    assert found is not None
    assert found.step is not None
    assert found.step.ms == pytest.approx(20), "its quarter of a core is twice as fast"
    assert cores_for(3.0, 2, node(one=0.9, many=4)) == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("cpu", "cores", "given", "threads"),
    [
        (10.0, 4.0, 1.0, [1]),
        (10.4, 4.0, 1.0, [1]),
        (20.0, 2.0, 1.0, [2]),
        (5.0, 2.0, 1.0, []),  # it waits
        (5.0, 2.0, 0.5, [1, 2]),  # it was given half a core, which two would not have been given more of
        (2.5, 0.25, 1.0, [1]),
    ],
)
def test_threads_are_those_that_would_have_been_given_no_more(
    cpu: float, cores: float, given: float, threads: list[int]
) -> None:
    many = 0.5 if given < 1 else 4.0
    assert threads_of(seen(cpu=cpu, step=10.0, cores=cores), node(one=given, many=many)) == threads


def test_where_threads_are_hidden_by_a_quota_the_interval_has_both() -> None:
    here = node(one=0.5, many=0.5)
    found = predicted("there", classes(10, here), node(many=2), seen(cpu=10, step=20, cores=2), here)
    assert found is not None
    assert found.step is not None
    assert (found.step.low, found.step.ms, found.step.high) == (pytest.approx(5), pytest.approx(5), pytest.approx(10))


def test_nodes_whose_measurements_vary_widen_the_interval() -> None:
    per_s = REFERENCE["integer"]
    loud = speeds_of(
        [Measurement(kind="integer", rates=[per_s, per_s * 0.9, per_s * 1.1], per_cpu_s=per_s, source="a test")]
    )
    assert loud is not None
    assert loud.spread == pytest.approx(0.2)
    found = predicted("there", classes(10, node()), loud, seen(), node())
    assert found is not None
    assert (found.cpu.low, found.cpu.ms, found.cpu.high) == (pytest.approx(8), pytest.approx(10), pytest.approx(12))


def test_what_was_only_learned_predicts_cpu_time_alone() -> None:
    known = learned(None, "j1", 10.0, node())
    found = predicted("there", known.classes, node(integer=2.0, memory=2.0), None, None)
    assert found is not None
    assert (found.cpu.ms, found.step) == (pytest.approx(5.0), None)


@given(cpu=TIMES, speeds=st.lists(st.tuples(SPEEDS, SPEEDS), min_size=2, max_size=6))
def test_jobs_whose_work_is_of_one_class_teach_that(cpu: float, speeds: list[tuple[float, float]]) -> None:
    """Work that takes CPU time as integers do, on nodes that differ: that class is never wrong."""
    known = None
    for number, (integer, memory) in enumerate(speeds):
        known = learned(known, f"j{number}", cpu / integer, node(integer, memory))
    assert known is not None
    assert known.runs == len(speeds)
    assert known.classes["integer"].work == pytest.approx(cpu)
    assert known.classes["integer"].error == pytest.approx(0, abs=1e-9)
    assert known.error == pytest.approx(0, abs=1e-9)
    assert "integer" in trusted(known.classes, ["integer", "memory"])


def test_errors_are_of_what_was_predicted_before_and_the_last_count_most() -> None:
    first = learned(None, "a", 10.0, node())
    assert first.error is None
    second = learned(first, "b", 20.0, node())
    assert second.classes["integer"] == ClassWork(work=15.0, error=0.5)
    third = learned(second, "c", 15.0, node())
    assert third.classes["integer"] == ClassWork(work=15.0, error=0.25)
    assert (third.runs, third.job) == (3, "c")
