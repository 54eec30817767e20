"""Quantities as people write them, and the integers that CES computes with.

CPU and memory follow Kubernetes (``500m``, ``1.5``, ``256Mi``), bandwidth follows tc (``10Mbit``, ``1Gbit``), a
duration has one unit (``90s``, ``45m``, ``1.5h``). What a request takes is written ``5ms`` or ``800us``, what it costs
``35ru``: a reference unit is a millisecond of the reference core. Inside and on the wire: millicores, bytes, bit/s,
seconds and, of a request, microseconds as integers.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_MICROSECONDS = {"": 1000, "us": 1, "ms": 1000, "s": 10**6}
_NUMBER = re.compile(r"\s*([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*([A-Za-z]*)\s*")
LARGEST = 10**15  # a double holds it exactly, and a signed 64-bit column the sum of thousands


def _split(value: object, what: str, example: str) -> tuple[Decimal, str]:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{what} must be a number or a string like {example}")
    match = _NUMBER.fullmatch(str(value))
    if not match:
        raise ValueError(f"{value!r} is no {what}; write it like {example}")
    return Decimal(match.group(1)), match.group(2)


def _whole(number: Decimal, value: object, what: str) -> int:
    if number > LARGEST:
        raise ValueError(f"{value!r} is too large for {what}")
    return int(number.to_integral_value(rounding="ROUND_CEILING"))


def parse_cpu(value: object) -> int:
    """Millicores of ``500m``, ``1.5`` or ``2``. Raises ValueError."""
    number, suffix = _split(value, "CPU quantity", "500m or 1.5")
    if suffix not in ("", "m"):
        raise ValueError(f"{value!r} has an unknown CPU unit {suffix!r}; write 500m or 1.5")
    return _whole(number if suffix == "m" else number * 1000, value, "a CPU quantity")


def parse_memory(value: object) -> int:
    """Bytes of ``256Mi``, ``1G`` or ``1048576``. Raises ValueError."""
    number, suffix = _split(value, "memory quantity", "256Mi")
    factor = _BINARY.get(suffix) or _DECIMAL.get(suffix)
    if factor is None:
        raise ValueError(f"{value!r} has an unknown memory unit {suffix!r}; write 256Mi or 1G")
    return _whole(number * factor, value, "a memory quantity")


def parse_bandwidth(value: object) -> int:
    """Bit/s of ``10Mbit`` or ``1Gbit`` (a bare number is bit/s, as in tc). Raises ValueError."""
    number, suffix = _split(value, "bandwidth", "10Mbit")
    factor = _BITS.get(suffix.lower() or "bit")
    if factor is None:
        raise ValueError(f"{value!r} has an unknown bandwidth unit {suffix!r}; write 10Mbit or 1Gbit")
    return _whole(number * factor, value, "a bandwidth")


def parse_duration(value: object) -> int:
    """Seconds of ``90s``, ``45m``, ``1.5h`` or ``2d`` (a bare number is seconds). Raises ValueError."""
    number, suffix = _split(value, "duration", "45m or 2h")
    factor = _SECONDS.get(suffix)
    if factor is None:
        raise ValueError(f"{value!r} has an unknown unit of time {suffix!r}; write 90s, 45m, 2h or 1d")
    return _whole(number * factor, value, "a duration")


def parse_latency(value: object) -> int:
    """Microseconds of ``5ms``, ``800us`` or ``1.5s`` (a bare number is ms). Raises ValueError."""
    number, suffix = _split(value, "time", "5ms or 800us")
    factor = _MICROSECONDS.get(suffix)
    if factor is None:
        raise ValueError(f"{value!r} has an unknown unit of time {suffix!r}; write 5ms, 800us or 1s")
    return _whole(number * factor, value, "a time")


def parse_work(value: object) -> int:
    """Microseconds of the reference core, of ``35ru`` (a bare number is ru, its milliseconds). Raises ValueError."""
    number, suffix = _split(value, "amount of work", "35ru")
    if suffix not in ("", "ru"):
        raise ValueError(f"{value!r} has an unknown unit of work {suffix!r}; write 35ru")
    return _whole(number * 1000, value, "an amount of work")


def format_cpu(millicores: int) -> str:
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"


def format_memory(size: int) -> str:
    for suffix, factor in reversed(_BINARY.items()):
        if size and size % factor == 0:
            return f"{size // factor}{suffix}"
    return str(size)


def format_bandwidth(rate: int) -> str:
    for suffix, factor in (("Gbit", 10**9), ("Mbit", 10**6), ("kbit", 10**3)):
        if rate and rate % factor == 0:
            return f"{rate // factor}{suffix}"
    return f"{rate}bit"


def format_duration(seconds: int) -> str:
    for suffix in ("d", "h", "m"):
        if seconds and seconds % _SECONDS[suffix] == 0:
            return f"{seconds // _SECONDS[suffix]}{suffix}"
    return f"{seconds}s"


def format_latency(microseconds: int) -> str:
    for suffix, factor in (("s", 10**6), ("ms", 1000)):
        if microseconds and microseconds % factor == 0:
            return f"{microseconds // factor}{suffix}"
    return f"{microseconds}us"


def format_work(microseconds: int) -> str:
    return f"{microseconds // 1000}ru" if microseconds % 1000 == 0 else f"{microseconds / 1000}ru"


def show_memory(size: float) -> str:
    """A memory size for people, rounded: ``1.5 GiB``."""
    for suffix, factor in reversed(_BINARY.items()):
        if size >= factor:
            return f"{size / factor:.4g} {suffix}B"
    return f"{size:.0f} B"


def show_bandwidth(rate: float) -> str:
    """A rate for people, rounded: ``47.6 Mbit/s``."""
    for suffix, factor in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if rate >= factor:
            return f"{rate / factor:.4g} {suffix}"
    return f"{rate:.0f} bit/s"


def show_cpu(millicores: float) -> str:
    """CPU for people: ``1.5 cores``."""
    cores = millicores / 1000
    return f"{cores:.4g} core{'' if cores == 1 else 's'}"


Cpu = Annotated[
    int,
    BeforeValidator(parse_cpu),
    PlainSerializer(format_cpu, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["500m", "1.5"]}),
]
Memory = Annotated[
    int,
    BeforeValidator(parse_memory),
    PlainSerializer(format_memory, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["256Mi"]}),
]
Bandwidth = Annotated[
    int,
    BeforeValidator(parse_bandwidth),
    PlainSerializer(format_bandwidth, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["10Mbit"]}),
]
Duration = Annotated[
    int,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["45m", "1.5h"]}),
]
Latency = Annotated[
    int,
    BeforeValidator(parse_latency),
    PlainSerializer(format_latency, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["5ms", "800us"]}),
]
WorkAmount = Annotated[
    int,
    BeforeValidator(parse_work),
    PlainSerializer(format_work, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["35ru"]}),
]
