"""Hostile variants of a good message: what its fields hold, what stands around them, and how it travels. Pure: the same
seed gives the same ones."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ces_common.bus.codec import ENCODING, ERROR, PATIENCE

LONG: Final = 300_000  # characters; more than a heartbeat may have
DEEP: Final = 20_000  # lists in each other
MANY: Final = 70_000  # items; more than any list may have
BOMB: Final = 64 * 2**20  # bytes, expanded

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Variant:
    """``how``: what is wrong with it. ``headers``: as they go over the wire after the first line, or all bytes of the
    block where they are to be odd. ``reply``: where an answer is wanted; None for the sender's own inbox."""

    how: str
    payload: bytes
    headers: Headers | bytes = ()
    reply: str | None = None


@dataclass(frozen=True)
class _Raw:
    """A piece of JSON as it stands, good or not."""

    text: str


Path = tuple[str | int, ...]

LITERALS: Final[Mapping[str, Sequence[str]]] = {
    "another type": ['"7"', "7", "-7", "true", "[]", "{}", '"x"', "0.5", '[[{"a":1}]]', '{"a":{}}', '""'],
    "null": ["null"],
    "a number out of bounds": [
        "9" * 400, "-" + "9" * 400, "1e308", "-1e308", "1e999", "1e-400", str(2**63), str(2**64), str(2**31), "-1",
        "-0.0", str(-(2**63) - 1), "1." + "3" * 400,
    ],
    "no number": ["NaN", "Infinity", "-Infinity", "nan", "+1", "0x10", "01", "1_000"],
    "a control character": [
        json.dumps(text)
        for text in ("\0", "\x1b[2J\x1b]0;x\x07", "a\r\nPUB x 1\r\n", "\u202eevil\u2066", "\ufeff", "\x7f\x9b")
    ],
    "half a character": ['"\\ud800"', '"\\udfff\\ud800"', '"a\\udc00b"'],
    "a text as of SQL or a path": [
        json.dumps(text) for text in ("'; DROP TABLE nodes; --", "../../etc/passwd", "%s%n{0}", "$JS.API.>", "*", ">")
    ],
}  # fmt: skip


def variants(good: Mapping[str, Any], others: Sequence[str], seed: str) -> Iterator[Variant]:
    """Without end. ``others``: names of other nodes and services."""
    chance = random.Random(seed)
    makers: Sequence[tuple[int, Callable[[random.Random, Mapping[str, Any], Sequence[str]], Variant]]] = (
        (12, _value), (3, _without), (2, _with_more), (2, _twice), (2, _other_name), (1, _long), (1, _deep), (1, _many),
        (3, _cut_short), (2, _noise), (2, _encoded), (2, _compressed), (3, _headed), (2, _reply), (2, _as_it_is),
    )  # fmt: skip
    weights = [weight for weight, _ in makers]
    while True:
        [(_, make)] = chance.choices(makers, weights)
        yield make(chance, good, others)


def _places(value: Any, at: Path = ()) -> Iterator[Path]:
    if at:
        yield at
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in parts:
        yield from _places(each, (*at, key))


def _put(value: Any, at: Path, new: object) -> Any:
    """A copy with something else at that place."""
    if not at:
        return new
    key, *rest = at
    copied: Any = dict(value) if isinstance(value, Mapping) else list(value)
    copied[key] = _put(copied[key], tuple(rest), new)
    return copied


def _text(value: Any) -> str:
    if isinstance(value, _Raw):
        return value.text
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{_text(each)}" for key, each in value.items()) + "}"
    return "[" + ",".join(map(_text, value)) + "]" if isinstance(value, list) else json.dumps(value)


def _replaced(chance: random.Random, good: Mapping[str, Any], literal: str) -> bytes:
    """Something of it, or all where it has nothing, is this literal."""
    places = list(_places(good))
    return _text(_put(good, chance.choice(places), _Raw(literal)) if places else _Raw(literal)).encode()


def _value(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    how = chance.choice(list(LITERALS))
    return Variant(how, _replaced(chance, good, chance.choice(LITERALS[how])))


def _without(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    kept = {key: value for key, value in good.items() if chance.random() < 0.6}
    return Variant("a field left out", _text(kept).encode())


def _with_more(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    name = chance.choice(["__proto__", "__class__", "model_config", "\0", "x" * 5000, "a.b", ""])
    return Variant("a field too many", _text({**good, name: {"a": [1, None]}}).encode())


def _twice(chance: random.Random, good: Mapping[str, Any], others: Sequence[str]) -> Variant:
    key = chance.choice(list(good) or ["node"])
    literal = chance.choice([json.dumps(chance.choice(others)), "null", "1", "[]"])
    return Variant("a field given twice", f"{_text(good)[:-1]},{json.dumps(key)}:{literal}}}".encode())


def _other_name(chance: random.Random, good: Mapping[str, Any], others: Sequence[str]) -> Variant:
    return Variant("another's name", _text({**good, "node": chance.choice(others)}).encode())


def _long(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    letter = chance.choice(["x", "\u0000", "\U0001f600", "\\", "'"])
    return Variant("a long text", _replaced(chance, good, json.dumps(letter * (LONG // len(json.dumps(letter))))))


def _deep(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    opened, closed = chance.choice([("[", "]"), ('{"a":', "}")])
    return Variant("deep nesting", _replaced(chance, good, opened * DEEP + "1" + closed * DEEP))


def _many(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    item = chance.choice(["1", '"a"', "{}", "null", "[]"])
    return Variant("a list too long", _replaced(chance, good, "[" + ",".join([item] * MANY) + "]"))


def _cut_short(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    text = _text(good).encode()
    return Variant("cut short", text[: chance.randrange(len(text))])


def _noise(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    if chance.random() < 0.5:
        return Variant("random bytes", chance.randbytes(chance.choice([0, 1, 7, 300, 5000])))
    damaged = bytearray(_text(good).encode())
    for _number in range(chance.randint(1, 8)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return Variant("damaged bytes", bytes(damaged))


def _encoded(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    encoding = chance.choice(["utf-16", "utf-32-be", "utf-8-sig", "cp037"])
    return Variant("another encoding of text", _text(good).encode(encoding))


@cache
def _bomb() -> bytes:
    return zlib.compress(b"[" * BOMB, 9)


def _compressed(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    text = _text(good).encode()
    packed = zlib.compress(text)
    how, payload, marks = chance.choice(
        [
            ("compressed", packed, [(ENCODING, "zlib")]),
            ("compressed and cut short", packed[:-5], [(ENCODING, "zlib")]),
            ("compressed with more behind it", packed + text, [(ENCODING, "zlib")]),
            ("said to be compressed", text, [(ENCODING, "zlib")]),
            ("compressed, and not said so", packed, []),
            ("an encoding that nobody knows", text, [(ENCODING, "br\x00otli")]),
            ("two encodings", packed, [(ENCODING, "zlib"), (ENCODING, "identity")]),
            ("what expands to 64 MiB", _bomb(), [(ENCODING, "zlib")]),
        ]
    )
    return Variant(how, payload, marks)


def _headed(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    odd: Sequence[Headers | bytes] = [
        b"NATS/1.0",
        b"NATS/1.0\r\n\r\n",
        b"NATS/1.0 \xff\xff\xff\r\n\r\n",
        b"NATS/1.0 503\r\n\r\n",
        b"NATS/1.0 100 Idle Heartbeat\r\n\r\n",
        b"NATS/1.0\r\n: \r\n:::\r\nno colon\r\n\r\n",
        b"NATS/1.0\r\nA: b\nC: d\r\n\r\n\r\n\r\n",
        b"NATS/1.0\r\n" + b"A: b\r\n" * 2000 + b"\r\n",
        b"NATS/1.0\r\nA: " + b"x" * 60_000 + b"\r\n\r\n",
        [(PATIENCE, chance.choice(["nan", "inf", "-1", "1e999", "0", "soon", "9" * 400]))],
        [(ERROR, "internal")],
        [("Nats-Msg-Id", "1"), ("Nats-Rollup", "all"), ("KV-Operation", "PURGE")],
        [("Nats-Expected-Stream", "CES_EVT"), ("Nats-Service-Error", "x")],
    ]
    return Variant("odd headers", _text(good).encode(), chance.choice(odd))


def _reply(chance: random.Random, good: Mapping[str, Any], others: Sequence[str]) -> Variant:
    other = chance.choice(others)
    subject = chance.choice(
        [
            f"_INBOX.{other}.1",
            f"ces.v1.hb.{other}",
            f"ces.v1.agent.{other}.status",
            f"ces.v1.desired.{other}.compute",
            f"$KV.ces_desired.{other}.compute",
            "$JS.API.STREAM.DELETE.CES_EVT",
            "$JS.API.STREAM.PURGE.KV_ces_desired",
            "$SYS.REQ.SERVER.PING",
            "ces.v1.evt.job.cancelled.x",
            "ces.v1.rpc.manager.snapshot",
            "_INBOX.",
            "x" * 3000,
        ]
    )
    return Variant("a reply to elsewhere", _text(good).encode(), (), subject)


def _as_it_is(chance: random.Random, good: Mapping[str, Any], _: Sequence[str]) -> Variant:
    """Good in form; what it says is not so."""
    return Variant("good in form", _text(good).encode())
