"""Quantities: what people write, and that nothing is lost between text and integers."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.quantities import (
    LARGEST,
    format_bandwidth,
    format_cpu,
    format_duration,
    format_memory,
    parse_bandwidth,
    parse_cpu,
    parse_duration,
    parse_memory,
    show_bandwidth,
    show_cpu,
    show_memory,
)

AMOUNTS = st.integers(0, LARGEST)


@given(AMOUNTS)
def test_what_is_formatted_parses_back(amount: int) -> None:
    assert parse_cpu(format_cpu(amount)) == amount
    assert parse_memory(format_memory(amount)) == amount
    assert parse_bandwidth(format_bandwidth(amount)) == amount
    assert parse_duration(format_duration(amount)) == amount


@pytest.mark.parametrize(
    ("text", "millicores"),
    [("500m", 500), ("1.5", 1500), ("2", 2000), (2, 2000), (0.25, 250), ("0.1m", 1), (" 1 ", 1000)],
)
def test_cpu(text: object, millicores: int) -> None:
    assert parse_cpu(text) == millicores


@pytest.mark.parametrize(
    ("text", "size"), [("256Mi", 256 * 2**20), ("1G", 10**9), ("1.5Ki", 1536), (1048576, 1048576), ("3k", 3000)]
)
def test_memory(text: object, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize(
    ("text", "rate"),
    [("10Mbit", 10**7), ("1Gbit", 10**9), ("1gbit", 10**9), ("64kbit", 64000), ("5", 5), ("0.5bit", 1)],
)
def test_bandwidth(text: object, rate: int) -> None:
    assert parse_bandwidth(text) == rate


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45m", 2700), ("90s", 90), ("1.5h", 5400), ("2d", 172_800), (30, 30), ("0.5s", 1), (" 1 h ", 3600)],
)
def test_durations(text: object, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("parse", [parse_cpu, parse_memory, parse_bandwidth, parse_duration])
@pytest.mark.parametrize(
    "wrong", ["", "abc", "-1", "1 2", "1e3", "1,5", "١", "5furlong", True, None, [], float("nan"), float("inf"), 10**16]
)
def test_what_is_no_quantity_is_refused_and_named(parse, wrong: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(wrong)


@given(st.text() | st.floats() | st.integers() | st.booleans() | st.none() | st.binary())
def test_parsing_gives_a_whole_number_in_bounds_or_a_value_error(value: object) -> None:
    for parse in (parse_cpu, parse_memory, parse_bandwidth, parse_duration):
        with suppress(ValueError):
            assert 0 <= parse(value) <= LARGEST


def test_very_long_numbers_are_refused_rather_than_computed_with() -> None:
    with pytest.raises(ValueError, match="is no CPU quantity"):
        parse_cpu("9" * 2_000_000)


def test_quantities_for_people() -> None:
    assert show_cpu(1500) == "1.5 cores"
    assert show_cpu(1000) == "1 core"
    assert show_memory(1.5 * 2**30) == "1.5 GiB"
    assert show_memory(12) == "12 B"
    assert show_bandwidth(47_600_000) == "47.6 Mbit/s"
    assert show_bandwidth(5) == "5 bit/s"
