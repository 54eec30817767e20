"""What a node's agent says of it when it joins, beyond amounts: where it is, how far its radio reaches, and what it
draws."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, field_validator

from ces_common.messages.base import Message
from ces_common.messages.energy import MOST_WATTS

MOST_COVERAGE: Final = 1_000_000
"""Metres."""
CURVE_POINTS: Final = 11
"""Of what a machine draws at 0, 10, ... 100 % of its CPU."""
Watts = Annotated[float, Field(ge=0, le=MOST_WATTS, allow_inf_nan=False)]
Latitude = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Longitude = Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]
Metres = Annotated[float, Field(ge=0, le=MOST_COVERAGE, allow_inf_nan=False)]


class Position(Message):
    """In degrees, WGS 84."""

    lat: Latitude
    lon: Longitude


class NodeProfile(Message):
    """``coverage``: metres around its position within which users reach it. ``power``: watts of the whole machine,
    without work and with all of its CPU in use, or at CURVE_POINTS equally spaced shares of it; empty where nobody has
    said."""

    position: Position | None = None
    coverage: Metres | None = None
    power: Annotated[list[Watts], Field(max_length=CURVE_POINTS)] = []

    @field_validator("power")
    @classmethod
    def _line_or_curve(cls, value: list[float]) -> list[float]:
        if len(value) not in (0, 2, CURVE_POINTS):
            raise ValueError(f"must be two numbers of watts, or {CURVE_POINTS}, not {len(value)}")
        if len(value) == 2 and value[0] > value[1]:
            raise ValueError("the first, without work, must be no more than the second")
        return value
