"""What a day is said to have been."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from ces_client import Client
from ces_experiments.malleable.tides.outcome import ALONE, BESIDE, hours, owners_ms, ratios, record
from ces_experiments.malleable.tides.report import pictures, tables
from ces_experiments.malleable.tides.run import failure_of, job_file, most
from ces_experiments.malleable.tides.watch import Device, Watch
from ces_testbed.errors import TestbedError

LENGTH_S = 24.0


def watched(*samples: dict[str, Any], given_back: float | None = None) -> Watch:
    watch = Watch.__new__(Watch)
    watch.devices = [Device("n1", given_back=[] if given_back is None else [given_back]), Device("n2")]
    watch.samples = list(samples)
    return watch


def sample(at_s: float, lent: str, occupied: str = "", **job: Any) -> dict[str, Any]:
    return {"at_s": at_s, "lent": lent.split(), "occupied": occupied.split(), **job}


def day(way: str, *took_ms: float) -> dict[str, Any]:
    """A day of a second an hour, with a device given back at six and a job that took two of its steps again."""
    watch = watched(
        sample(0.0, "n1 n2", "n1", size=1, step=None),
        sample(6.0, "n2", "n1", size=0, step=12),
        sample(12.0, "n2", "n2", size=1, step=10),
        sample(20.0, "n1 n2", size=0, step=15),
        sample(24.5, "n1"),
        given_back=0.25 if way == BESIDE else None,
    )
    pieces = [[(7200.0, each / 1000)] * 100 for each in took_ms]
    found = record(watch, pieces, LENGTH_S)
    return {"seed": 1, "way": way, "load_average": 0.5, "stolen": 0.0, "owners": OWNERS, **found}


OWNERS = [{"busiest_s": 43_200.0, "bursts": [[3600.0, 7200.0]]}, {"busiest_s": 50_000.0, "bursts": []}]


def test_steps_and_hours_are_counted() -> None:
    found = day(BESIDE, 4.0, 4.0)
    assert (found["steps"], found["lost"]) == (15, 2)
    assert hours(found) == {"lent": 6 * 2 + 6 + 8, "used": 6 + 8, "reclaims": 1}


def test_owners_are_compared_each_with_itself() -> None:
    runs = [day(ALONE, 4.0, 8.0), day(BESIDE, 5.0, 8.0)]
    assert ratios(runs, "p95") == pytest.approx([1.25, 1.0])
    assert owners_ms(runs)[BESIDE] == {"n": 200, "p50": pytest.approx(6.5), "p95": pytest.approx(6.5)}
    assert ratios(runs[:1], "p95") == []


def test_a_device_is_given_back_from_the_moment_its_workers_are_frozen() -> None:
    device = Device("n1")
    for now, running, frozen in ((1.0, True, False), (2.0, True, True), (3.0, True, False), (4.5, False, False)):
        device.seen(now, running, frozen)
    assert device.given_back == [2.5]  # they may go on to write a checkpoint: they are still there
    device.seen(9.0, False, False)
    assert device.given_back == [2.5]


class Silent:
    """A manager that does not answer."""

    @property
    def nodes(self) -> Any:
        raise ConnectionError("nobody answers")


def test_a_day_that_cannot_be_watched_ends_at_once_and_says_why() -> None:
    began = time.monotonic()
    with pytest.raises(TestbedError, match="could not be watched: nobody answers"):
        Watch(cast(Client, Silent()), "nobody", ["n1"], None).until(began + 600, began)
    assert time.monotonic() < began + 60


def test_an_owner_needs_no_more_than_one_process_can_do() -> None:
    assert [most(cores) * cores for cores in (2, 20)] == pytest.approx([0.2, 0.5])


def test_tables_and_picture_after_each_day() -> None:
    known = {"question": {"nodes": 2, "length_s": LENGTH_S}, "setting": {}}
    runs = [day(ALONE, 4.0, 8.0), day(BESIDE, 5.0, 8.0)]
    assert len(tables(known | {"runs": runs[:1]})) == 2
    assert pictures(known | {"runs": runs[:1]}) == {}
    owners, compared, back, days = tables(known | {"runs": runs})
    assert [row[-1] for row in owners.rows] == ["6.00", "6.50"]
    assert compared.rows[1][:2] == ["p95", "2"]
    assert back.rows[0][1:] == ["1", "0.25", "0.25"]
    assert days.rows[0][:6] == ["1", "26.0", "14.0", "1", "15", "2"]
    assert set(pictures(known | {"runs": runs})) == {"tides.png"}


def test_a_job_that_did_nothing_is_bad_news() -> None:
    assert failure_of({}, [{"way": BESIDE, "seed": 3, "steps": 0}]) == "the job took no step in the day of seed 3"
    assert failure_of({}, [{"way": ALONE, "seed": 3, "steps": 0}, {"way": BESIDE, "seed": 3, "steps": 1}]) is None


def test_the_job_takes_as_many_devices_as_it_is_given() -> None:
    file = job_file("tide", 4)
    assert file.elastic is not None
    assert list(file.elastic.allowed) == [1, 2, 3, 4]
