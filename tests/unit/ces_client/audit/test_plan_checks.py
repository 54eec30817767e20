from __future__ import annotations

import pytest

from ces_client.audit.plan_checks import wrong_paths

PLACES = {"w-0": "n1", "w-1": "n2"}
GATE = "south--gate"
LINKS = {("n1", "s1"): 1, ("s1", GATE): 1, (GATE, "s1"): 1, ("s1", "n1"): 1}


def wrong(src: str, dst: str, path: list[str]) -> list[str]:
    return list(wrong_paths(PLACES, [{"src": src, "dst": dst, "path": path}], LINKS))


@pytest.mark.parametrize(
    ("src", "dst", "path"), [("w-0", "w-2", ["n1", "s1", GATE]), ("w-2", "w-0", [GATE, "s1", "n1"])]
)
def test_a_flow_of_a_task_in_another_region_ends_at_what_stands_for_its_gateway(
    src: str, dst: str, path: list[str]
) -> None:
    assert wrong(src, dst, path) == []


@pytest.mark.parametrize(
    ("src", "dst", "path"),
    [
        ("w-0", "w-2", ["n1", "s1"]),  # nowhere near a border
        ("w-0", "w-1", ["n1", "s1", GATE]),  # its task is here
        ("w-2", "w-0", [GATE, "s1"]),
    ],
)
def test_one_that_ends_elsewhere_is_found(src: str, dst: str, path: list[str]) -> None:
    assert "its tasks are elsewhere" in wrong(src, dst, path)[0]
