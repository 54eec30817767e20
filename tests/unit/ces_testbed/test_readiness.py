"""Waiting for services: what they say they lack, and what of the time counts."""

from __future__ import annotations

import os
from collections.abc import Iterator

import httpx
import pytest

from ces_common.health import COMPILING
from ces_testbed.readiness import Patience, ReadyProbe, busy


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def probe(*answers: httpx.Response | Exception) -> ReadyProbe:
    left: Iterator[httpx.Response | Exception] = iter(answers)

    def answer(_: httpx.Request) -> httpx.Response:
        given = next(left)
        if isinstance(given, Exception):
            raise given
        return given

    return ReadyProbe("http://scheduler/readyz", httpx.MockTransport(answer))


def test_what_is_missing_is_told_until_it_is_ready() -> None:
    compiling = httpx.Response(503, json={"status": "not ready", "missing": COMPILING})
    ready = httpx.Response(200, json={"status": "ready", "remark": "the policy is refused"})
    with probe(httpx.ConnectError("refused"), compiling, httpx.ReadTimeout("busy"), ready) as asked:
        assert (asked.ready(), asked.missing) == (False, "")
        assert not asked.ready()
        assert asked.compiling
        assert not asked.ready()
        assert asked.compiling, "too busy with it to answer"
        assert asked.ready()
        assert not asked.compiling
        assert asked.remark == "the policy is refused"


def test_a_service_that_ended_compiles_no_more() -> None:
    compiling = httpx.Response(503, json={"missing": COMPILING})
    with probe(compiling, httpx.ConnectError("refused"), httpx.Response(502, text="no JSON")) as asked:
        assert not asked.ready()
        assert not asked.ready()
        assert not asked.compiling
        assert not asked.ready()


def test_what_is_missing_for_a_while_is_said_once() -> None:
    clock = Clock()
    asked = ReadyProbe("http://scheduler/readyz", clock=clock)
    said = []
    for at, missing in (
        (0, ""),
        (1, "the bus"),
        (2, "the bus"),
        (3, COMPILING),
        (5, COMPILING),
        (7, COMPILING),
        (60, COMPILING),
    ):
        clock.now, asked.missing = at, missing
        said.append(asked.news())
    assert [bool(text) for text in said] == [False, False, False, False, False, True, False]
    assert said[5].startswith(f"{COMPILING} (a minute or more")


def test_compiling_does_not_count_but_has_an_end() -> None:
    clock = Clock()
    patience = Patience(ready_s=90, compiled_s=600, clock=clock)
    for at, compiling, over in ((60, True, False), (300, True, False), (389, False, False), (391, False, True)):
        clock.now = at
        assert patience.is_over(compiling=compiling) is over
    patience = Patience(ready_s=90, compiled_s=600, clock=clock)
    clock.now += 601
    assert patience.is_over(compiling=True)


def test_a_busy_machine_is_named_where_something_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = len(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0 * cores, 0.0, 0.0))
    assert f"The machine is busy (load average {3 * cores}.0 on {cores} cores): try again" in busy()
    monkeypatch.setattr(os, "getloadavg", lambda: (float(cores), 9.0, 9.0))
    assert busy() == ""
