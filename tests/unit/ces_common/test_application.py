"""Application files: what they say beyond a job file, and every way to get one wrong."""

from __future__ import annotations

from typing import Any

import pytest
from applications import inspection, inspection_file, request
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ces_common.application import access_ms, request_rates, routes_of
from ces_common.jobfile import JobFile
from ces_common.quantities import LARGEST, format_latency, format_work, parse_latency, parse_work

USER = {"name": "cam", "at": {"node": "roof1"}}
FRIEND = {"name": "friend", "at": {"node": "gate1"}}
CLIENT, DETECT = inspection()["tasks"]
THERE, BACK = inspection()["flows"]["edges"]


@given(st.integers(0, LARGEST))
def test_times_and_work_that_are_formatted_parse_back(amount: int) -> None:
    assert parse_latency(format_latency(amount)) == amount
    assert parse_work(format_work(amount)) == amount


@pytest.mark.parametrize(("text", "microseconds"), [("5ms", 5000), ("800us", 800), ("1.5s", 1_500_000), (2, 2000)])
def test_times(text: object, microseconds: int) -> None:
    assert parse_latency(text) == microseconds


def test_a_file_is_read_back_as_it_was_written() -> None:
    file = inspection_file(objective={"time": 0.5, "energy": 0.5})
    assert JobFile.model_validate_json(file.model_dump_json()) == file


def test_the_way_of_a_request() -> None:
    file = inspection_file()
    (route,) = routes_of(file.requests, file.expand_tasks())
    assert route.steps == ("client-0", "detect-0", "client-0")
    assert route.works == ("client-0", "detect-0")
    assert route.flows == [("client-0", "detect-0"), ("detect-0", "client-0")]
    assert request_rates([route]) == {"client-0": 10.0, "detect-0": 10.0}


def test_access_counts_both_ways_with_what_is_sent() -> None:
    """1 ms each way, 10 kB at 1 Mbit/s are 80 ms, 1 kB are 8 ms; without an answer there is one way only."""
    file = inspection_file(users=[USER | {"access": {"delay": "1ms", "bandwidth": "1Mbit"}}])
    messages = {(flow.src, flow.dst): flow.message for flow in file.expand_flows()}
    users = {user.name: user for user in file.users}
    (both,) = routes_of(file.requests, file.expand_tasks())
    (one,) = routes_of([file.requests[0].model_copy(update={"chain": ["detect"]})], file.expand_tasks())
    assert access_ms(both, users, messages) == pytest.approx(90.0)
    assert access_ms(one, users, messages) == pytest.approx(81.0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"users": []}, "tasks: client is at user 'cam', whom nobody knows; add that one to users"),
        ({"requests": [request(**{"from": "who"})]}, "requests[0].from: no user is named 'who'; add it to users"),
        ({"users": [USER, USER]}, "users[1].name: 'cam' is used twice; rename one"),
        ({"users": [USER | {"at": {}}]}, "give lat and lon, or node"),
        ({"users": [USER | {"at": {"lat": 1}}]}, "give both lat and lon"),
        ({"users": [USER | {"at": {"lat": 1, "lon": 1, "node": "n"}}]}, "give lat and lon, or node"),
        ({"users": [USER | {"name": "detect"}]}, "a group of tasks is named 'detect', too; rename one"),
        ({"requests": [request(chain=["gone"])]}, "requests[0].chain[0]: no task is named 'gone'; those that can"),
        ({"requests": [request(chain=["cam"])]}, "requests[0].chain[0]: client-0 comes twice in a row; name it once"),
        ({"requests": [request(deadline=None)]}, "hard: give a deadline as well, or leave hard out"),
        ({"requests": [request(rate=0)]}, "greater than 0"),
        ({"requests": [request(), request()]}, "requests[1].name: 'loop' is used twice; rename one"),
        ({"objective": {"time": 0.5}}, "the weights must add up to 1, not to 0.5"),
        ({"flows": {"edges": [THERE]}}, "requests[0].chain: no flow leads from detect-0 to client-0; add it to"),
        ({"tasks": [CLIENT | {"replicas": 2}, DETECT]}, "client-0 and client-1 are both at user 'cam'"),
        ({"tasks": [CLIENT, DETECT | {"replicas": 2}]}, "detect has several tasks; name one of them, such as detect-0"),
        (
            {"tasks": [CLIENT | {"constraints": {}}, DETECT]},
            "requests[0].from: no task is at user 'cam'; give one group of tasks constraints: {user: cam}",
        ),
        (
            {"tasks": [CLIENT, DETECT | {"constraints": {"user": "who"}}]},
            "tasks: detect is at user 'who', whom nobody knows; add that one to users",
        ),
        ({"requests": []}, "kind: an application of kind compute says what its requests are; add requests"),
        ({"requests": [request(chain=["detect"])]}, "kind compute needs a task with work, and a user at the end"),
        ({"kind": "content"}, "content is more than what asks for it; end it with a user"),
        ({"kind": "communication"}, "communication goes from one user to another; end it with the other's name"),
        ({"kind": "complex"}, "kind: complex means several tasks with work in one chain"),
        ({"regions": ["any"]}, "regions: leave it out: delays and users' places are known within one region only"),
        (
            {"kind": None, "flows": {}, "requests": [], "elastic": {"group": "detect", "sizes": [1, 2]}},
            "elastic: leave it out: what requests take is reckoned for a fixed number of tasks",
        ),
    ],
)
def test_mistakes_name_the_field_and_the_remedy(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        inspection_file(**fields)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("content", {"flows": {"edges": [THERE | {"message": "1k"}, BACK | {"message": "1M"}]}}),
        ("complex", {"tasks": [CLIENT | {"work": {"per_request": "2ru"}}, DETECT]}),
        (
            "communication",
            {
                "users": [USER, FRIEND],
                "tasks": [CLIENT, DETECT, CLIENT | {"name": "phone", "constraints": {"user": "friend"}}],
                "flows": {"edges": [THERE, BACK | {"dst": "phone-0"}]},
                "requests": [request(chain=["detect", "friend"])],
            },
        ),
    ],
)
def test_each_kind_takes_what_it_is_for(kind: str, fields: dict[str, Any]) -> None:
    assert inspection_file(**{"kind": kind} | fields).kind == kind


def test_a_job_file_without_the_fields_is_no_application() -> None:
    plain = JobFile.model_validate({"name": "j", "tasks": [{"name": "w", "command": ["run"]}]})
    assert not plain.is_application
    assert inspection_file().is_application
