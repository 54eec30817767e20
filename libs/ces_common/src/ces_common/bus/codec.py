"""How requests and replies travel: large ones compressed, errors marked by a header."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

from ces_common.bus.port import BusError, RemoteError

COMPRESS_ABOVE: Final = 8 * 1024  # bytes
LARGEST_DOCUMENT: Final = 128 * 1024 * 1024  # bytes once expanded, of a desired state
ENCODING: Final = "Ces-Encoding"
ERROR: Final = "Ces-Error"
PATIENCE: Final = "Ces-Patience"  # seconds for which the sender of a request waits


def pack(data: bytes) -> tuple[bytes, dict[str, str]]:
    """What to send for ``data``, and the headers that say so."""
    if len(data) <= COMPRESS_ABOVE:
        return data, {}
    packed = zlib.compress(data, 1)
    return (packed, {ENCODING: "zlib"}) if len(packed) < len(data) else (data, {})


def unpack(data: bytes, headers: Mapping[str, str], largest: int) -> bytes:
    """``largest``: a bound on the bytes that a hostile message can make us hold. Raises BusError for a larger one, and
    where it is not what its headers say."""
    encoding = headers.get(ENCODING)
    if encoding is None:
        if len(data) > largest:
            raise BusError(f"a message of {len(data)} bytes is more than the {largest} that are taken here")
        return data
    if encoding != "zlib":
        raise BusError(f"unknown encoding {encoding!r}")
    expander = zlib.decompressobj()
    try:
        expanded = expander.decompress(data, largest + 1)  # of 0 zlib thinks that there is no limit
    except zlib.error as error:
        raise BusError(f"a compressed message is damaged: {error}") from error
    if not expander.eof or len(expanded) > largest:
        raise BusError(f"a compressed message is cut short or expands beyond {largest} bytes")
    return expanded


def pack_error(error: BaseException) -> tuple[bytes, dict[str, str]]:
    if isinstance(error, RemoteError):
        code, text = error.code, error.message
    else:
        code, text = "internal", f"{type(error).__name__}: {error}"
    data, headers = pack(text.encode())
    return data, {**headers, ERROR: code}


def unpack_reply(data: bytes, headers: Mapping[str, str], largest: int) -> bytes:
    """The reply's payload. Raises RemoteError if it is an error, BusError as ``unpack`` does."""
    payload = unpack(data, headers, largest)
    code = headers.get(ERROR)
    if code is not None:
        raise RemoteError(code, payload.decode(errors="replace"))
    return payload


def patience_of(headers: Mapping[str, str], otherwise: float) -> float:
    """How long the sender of a request waits; ``otherwise`` where it does not say."""
    try:
        patience_s = float(headers.get(PATIENCE, otherwise))
    except ValueError:
        return otherwise
    return patience_s if patience_s > 0 else otherwise  # which is no number is not above zero either
