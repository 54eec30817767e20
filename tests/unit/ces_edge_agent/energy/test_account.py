"""A node's account of its energy, on a machine that is made of files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_files import CPUS, Kernel, Powercap

from ces_common.messages.energy import MAX_METERED
from ces_edge_agent.energy.account import LONGEST_S, TOLD_S, Account
from ces_edge_agent.energy.meters import Model, found_meter

JOULE = 1_000_000
RESERVED = {"a": 1000, "b": 500}


class Machine(Kernel):
    """With two workers, and a processor that counts its energy."""

    def __init__(self, folder: Path, **more: bool) -> None:
        super().__init__(folder, **more)
        self.powercap, self.now, self.counted = Powercap(folder / "powercap"), 100.0, 262_000_000_000
        self.seconds = {"a": 0.0, "b": 0.0}
        self.workers = {"a": 17, "b": 18}
        for name, pid in self.workers.items():
            self.process(str(pid), f"ces/n/{name}.1")
        self.goes_on(0, joules=0)

    def goes_on(self, seconds: float, *, joules: float, a: float = 0, b: float = 0, others: float = 0) -> None:
        self.now, self.counted = self.now + seconds, self.counted + round(joules * JOULE)
        self.powercap.counts(self.counted)
        for name, more in (("a", a), ("b", b)):
            self.seconds[name] += more
            self.used(f"ces/n/{name}.1", self.seconds[name])
        self.passes(seconds, busy=a + b + others)

    def account(self, idle_watts: float | None = None) -> Account:
        meter = found_meter(None, self.powercap.root, self.powercap.root / "none")
        assert meter is not None
        return Account(meter, CPUS * 1000, idle_watts, proc=self.proc, roots=self.roots)


@pytest.fixture(params=[False, True], ids=["version 1", "version 2"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(tmp_path, unified=request.param)


def test_energy_goes_by_cpu_time_and_what_is_reserved(machine: Machine) -> None:
    account = machine.account(idle_watts=10)
    first = account.look(machine.now, machine.workers, RESERVED)
    assert (first.source, first.meter, first.total, first.allocations) == ("measured", "rapl", 0, {})
    machine.goes_on(2, joules=100, a=1, b=2, others=1)
    report = account.look(machine.now, machine.workers, RESERVED)
    assert (report.total, report.watts) == (100 * JOULE, 50)
    assert report.allocations == {"a": (20 + 10) * JOULE, "b": (40 + 5) * JOULE}  # of 80 J of work, 20 J of idling


def test_without_a_word_on_idling_the_least_that_was_seen_is_it(machine: Machine) -> None:
    account = machine.account()
    account.look(machine.now, machine.workers, {})
    machine.goes_on(2, joules=10)  # 5 W, and all of it idling
    account.look(machine.now, machine.workers, {})
    machine.goes_on(2, joules=50, a=2)
    assert account.look(machine.now, machine.workers, {"a": 1000}).allocations == {"a": (40 + 5) * JOULE, "b": 0}


def test_a_counter_goes_round_and_nothing_is_lost(machine: Machine) -> None:
    account = machine.account()
    account.look(machine.now, machine.workers, RESERVED)
    for _ in range(10):  # it begins again at 262 143 J, and has counted 262 000
        machine.goes_on(2, joules=40, a=1)
        report = account.look(machine.now, machine.workers, RESERVED)
    assert report.total == 400 * JOULE


def test_another_start_of_the_agent_begins_at_nothing(machine: Machine) -> None:
    """And what its workers had used before is not counted again."""
    account = machine.account()
    account.look(machine.now, machine.workers, RESERVED)
    machine.goes_on(2, joules=40, a=4)
    assert account.look(machine.now, machine.workers, RESERVED).total == 40 * JOULE
    machine.goes_on(2, joules=40, a=4)
    account = machine.account(idle_watts=0)
    assert account.look(machine.now, machine.workers, RESERVED).total == 0
    machine.goes_on(2, joules=20, b=1, others=1)
    report = account.look(machine.now, machine.workers, RESERVED)
    assert (report.total, report.allocations) == (20 * JOULE, {"a": 0, "b": 10 * JOULE})


def test_a_look_that_was_overtaken_counts_nothing_twice(machine: Machine) -> None:
    account = machine.account()
    account.look(machine.now, machine.workers, RESERVED)
    early = machine.now
    machine.goes_on(2, joules=40)
    report = account.look(machine.now, machine.workers, RESERVED)
    assert account.look(early, machine.workers, RESERVED) == report
    machine.goes_on(2, joules=40)
    assert account.look(machine.now, machine.workers, RESERVED).total == 80 * JOULE


def test_a_meter_that_hangs_costs_one_thread(machine: Machine) -> None:
    entered, gone = Event(), Event()

    class Hanging(Model):
        def used(self, elapsed_s: float, utilisation: float) -> int | None:
            entered.set()
            gone.wait()
            return super().used(elapsed_s, utilisation)

    account = Account(Hanging([10, 10]), 1000, proc=machine.proc, roots=machine.roots)
    with ThreadPoolExecutor(2) as threads:
        try:
            first = threads.submit(account.look, machine.now, {}, {})
            assert entered.wait(30)
            assert threads.submit(account.look, machine.now + 2, {}, {}).result(30) is None
        finally:
            gone.set()
        assert first.result(30) is not None
    machine.goes_on(2, joules=0)
    report = account.look(machine.now, {}, {})
    assert report is not None, "and it goes on when the meter does"
    assert report.total == 20 * JOULE


def test_a_worker_that_is_adopted_counts_from_then_on(machine: Machine) -> None:
    """It has used more than the whole machine since the last look, so it has not begun since."""
    machine.seconds["b"] = 1000
    account = machine.account(idle_watts=0)
    account.look(machine.now, {"a": 17}, {})
    machine.goes_on(2, joules=40, a=1, b=1)
    assert account.look(machine.now, machine.workers, {}).allocations == {"a": 20 * JOULE, "b": 0}
    machine.goes_on(2, joules=40, a=1, b=1)
    assert account.look(machine.now, machine.workers, {}).allocations == {"a": 40 * JOULE, "b": 20 * JOULE}


def test_a_worker_that_came_in_between_counts_from_its_start(machine: Machine) -> None:
    account = machine.account(idle_watts=0)
    account.look(machine.now, {"a": 17}, {})
    machine.goes_on(2, joules=40, a=1, b=3)
    report = account.look(machine.now, machine.workers, {})
    assert report.allocations == {"a": 10 * JOULE, "b": 30 * JOULE}


def test_one_that_has_ended_is_still_told_of(machine: Machine) -> None:
    account = machine.account(idle_watts=0)
    account.look(machine.now, machine.workers, {})
    machine.goes_on(2, joules=40, a=4)
    account.look(machine.now, machine.workers, {})
    machine.goes_on(2, joules=10)
    report = account.look(machine.now, {}, {})
    assert (report.total, report.allocations) == (50 * JOULE, {"a": 40 * JOULE, "b": 0})
    for _ in range(5):
        machine.goes_on(TOLD_S / 4, joules=10)
        report = account.look(machine.now, {}, {})
    assert (report.total, report.allocations) == (100 * JOULE, {}), "but not for ever"


def test_what_a_machine_used_in_a_long_gap_is_not_known(machine: Machine) -> None:
    account = machine.account()
    account.look(machine.now, machine.workers, RESERVED)
    machine.goes_on(LONGEST_S + 1, joules=40)
    assert account.look(machine.now, machine.workers, RESERVED).total == 0
    machine.goes_on(2, joules=40)
    assert account.look(machine.now, machine.workers, RESERVED).total == 40 * JOULE


def test_a_kernel_that_does_not_tell_costs_the_time_in_between(machine: Machine) -> None:
    account = machine.account()
    account.look(machine.now, machine.workers, RESERVED)
    stat = machine.proc / "stat"
    stat.unlink()
    assert account.look(machine.now + 1, machine.workers, RESERVED).total == 0
    machine.goes_on(2, joules=40)
    assert account.look(machine.now, machine.workers, RESERVED).total == 0
    machine.goes_on(2, joules=40)
    assert account.look(machine.now, machine.workers, RESERVED).total == 40 * JOULE


def test_a_report_names_no_more_than_the_manager_takes(machine: Machine) -> None:
    account = Account(Model([10, 10]), 1000, 10, proc=machine.proc, roots=machine.roots)
    account.look(machine.now, {}, {})
    for begin in (0, MAX_METERED):
        machine.goes_on(2, joules=0)
        account.look(machine.now, {}, {f"w{begin + number}": 1 for number in range(MAX_METERED)})
    machine.goes_on(2, joules=0)
    report = account.look(machine.now, {}, {"w2": 1})
    assert len(report.allocations) == MAX_METERED
    assert {"w2", f"w{2 * MAX_METERED - 1}"} <= report.allocations.keys()
    assert sum(report.allocations.values()) <= report.total


STEPS = st.tuples(
    st.floats(0.1, 30), st.floats(0, 900), st.floats(0, 20), st.floats(0, 20), st.floats(0, 20), st.booleans()
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, min_size=1, max_size=12), st.sampled_from([None, 0.0, 20.0]))
def test_jobs_and_the_rest_add_up_to_the_node(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[float, ...]], idle_watts: float | None
) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    account = machine.account(idle_watts)
    report = account.look(machine.now, machine.workers, RESERVED)
    begin = machine.counted
    for seconds, watts, a, b, others, there in steps:
        machine.goes_on(seconds, joules=min(watts, 900) * seconds, a=a, b=b, others=others)
        before, report = report, account.look(machine.now, machine.workers if there else {}, RESERVED)
        assert report.total == machine.counted - begin, "every joule that was counted is in the node's"
        assert sum(report.allocations.values()) <= report.total
        assert all(used >= before.allocations.get(name, 0) for name, used in report.allocations.items()), (
            "they only grow"
        )
