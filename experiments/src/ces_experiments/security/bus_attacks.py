"""What the rogue tries on the broker with its credential."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from ces_common import subjects
from ces_experiments.security import forbidden
from ces_experiments.security.connection import Rogue
from ces_experiments.security.kinds import SAID, Kind
from ces_experiments.security.mutations import Variant, variants
from ces_experiments.security.tally import Tally, of_the_broker
from ces_experiments.security.target import Target

TOGETHER: Final = 100  # messages between two looks at whether the broker keeps up
ANSWER_S: Final = 2.0
MIB: Final = 2**20


async def fuzzed(rogue: Rogue, kind: Kind, of_kind: Iterable[Variant]) -> int:
    """Send all of them as fast as the broker takes them; gives how many."""
    count = 0
    for count, variant in enumerate(of_kind, start=1):
        try:
            await rogue.publish(kind.subject(rogue.name), variant.payload, variant.headers, variant.reply)
            if count % TOGETHER == 0:
                await rogue.settled()
        except (OSError, TimeoutError):
            await rogue.back()
    return count


async def fuzz(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    """Some hostile variants of each kind of message."""
    before, tries = rogue.mark(), 0
    for kind in SAID:
        made = variants(kind.sample(rogue.name), target.others, f"{chance.random()} {kind.name}")
        tries += await fuzzed(rogue, kind, islice(made, TOGETHER))
    await _settle(rogue)
    return of_the_broker(tries, before, rogue.seen)


async def forged_names(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    """Good messages under the names of others."""
    said = [
        (kind.subject(other), json.dumps(kind.sample(other)).encode())
        for kind in SAID
        for other in target.others
    ]  # fmt: skip
    return await _each(rogue, [(subject, payload, None) for subject, payload in said])


async def jetstream(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    return await _each(rogue, [(subject, b"{}", None) for subject in forbidden.jetstream()])


async def jetstream_by_reply(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    """The server answers some requests, and executes an answer that falls on a subject of its API."""
    asked = [kind for kind in SAID if kind.model is None or kind.name in ("heartbeat", "renewal")]
    return await _each(
        rogue, [(chance.choice(asked).subject(rogue.name), b"", subject) for subject in forbidden.jetstream()]
    )


async def subjects_of_services(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    """Questions, events, documents and inboxes."""
    return await _each(rogue, [(subject, b"{}", None) for subject in forbidden.of_services(rogue.name, target.others)])


async def system(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    return await _each(rogue, [(subject, b"{}", None) for subject in forbidden.SYSTEM])


async def listening(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    """To what is not said to it."""
    patterns = list(forbidden.patterns(target.others))
    before = rogue.mark()
    heard = (f"SUB {pattern} {number}\r\n" for number, pattern in enumerate(patterns, start=100))
    try:
        await rogue.send("".join(heard).encode())
    except (OSError, TimeoutError):
        await rogue.back()
    await _settle(rogue)
    return of_the_broker(len(patterns), before, rogue.seen)


async def large_messages(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    """As large as the broker takes, and larger; and one that never ends."""
    before = rogue.mark()
    worker = {"allocation": "a" * 100, "incarnation": 1, "state": "running", "reason": "x" * 500}
    bodies = {
        "status": {"node": rogue.name, "generation": 1, "workers": [worker] * 4096},
        "applied": {"node": rogue.name, "generation": 1, "jobs": ["j" * 100 + str(i) for i in range(60_000)]},
        "data": {"node": rogue.name, "datasets": ["d" * 60] * 60_000},
    }
    made = [(f"ces.v1.agent.{rogue.name}.{kind}", json.dumps(body).encode()) for kind, body in bodies.items()]
    made += [(f"ces.v1.hb.{rogue.name}", b" " * 7 * MIB), (f"ces.v1.agent.{rogue.name}.links", b"[" * 7 * MIB)]
    for subject, payload in made:
        await _try(rogue, subject, payload)
    await _try(rogue, f"ces.v1.agent.{rogue.name}.status", b" " * 9 * MIB)  # which ends the connection
    await _settle(rogue)
    with suppress(OSError, TimeoutError):
        await rogue.send(b"PUB ces.v1.agent.%b.status %d\r\n[[[" % (rogue.name.encode(), 8 * MIB))
    await rogue.back()
    return of_the_broker(len(made) + 2, before, rogue.seen)


async def lies(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    """In its own name, of what others do: their workers have failed, their networks are in place or are not, their
    progress is made up, their links are down."""
    name = rogue.name
    status = {"node": name, "epoch": "", "generation": 2**62, "workers": [
        {"allocation": allocation, "incarnation": chance.randint(1, 3), "state": chance.choice(["exited", "refused"]),
         "exit_code": 1, "reason": "not true"}
        for allocation, _, _ in target.allocations
    ]}  # fmt: skip
    attempts = [f"{job}.{attempt}" for _, job, _ in target.allocations for attempt in (1, 2)]
    told = [
        (f"ces.v1.agent.{name}.status", status),
        (f"ces.v1.agent.{name}.applied", {"node": name, "generation": 2**62, "jobs": attempts}),
        (f"ces.v1.agent.{name}.applied", {"node": name, "generation": 2**62, "failed": dict.fromkeys(attempts, "no")}),
        (
            f"ces.v1.agent.{name}.links",
            {"node": name, "links": [{"peer": other, "state": "down", "reason": "no"} for other in target.others]},
        ),
        *(
            (
                f"ces.v1.agent.{name}.progress",
                {
                    "node": name,
                    "allocation": allocation,
                    "job": job,
                    "task": task,
                    "data": {"round": 10**400, "loss": 0},
                },
            )
            for allocation, job, task in target.allocations
        ),
    ]
    return await _each(rogue, [(subject, json.dumps(body).encode(), "") for subject, body in told])


async def secrets_of_others(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    """Ask for what tasks on other nodes are given."""
    queries = [
        {"allocation": allocation, "incarnation": chance.randint(1, 2)} for allocation, _, _ in target.allocations
    ]
    before = rogue.mark()
    for query in queries:
        try:
            await rogue.ask(subjects.secrets(rogue.name), json.dumps(query).encode(), ANSWER_S)
        except (OSError, TimeoutError):
            await rogue.back()
    return of_the_broker(len(queries), before, rogue.seen)


async def second_machine(rogue: Rogue, target: Target, chance: random.Random) -> Tally:
    """Heartbeats of machines that have the same credential."""
    beats = [
        {"node": rogue.name, "boot": f"b{number}", "machine": f"{chance.getrandbits(128):032x}"} for number in range(5)
    ]
    own, before = {"node": rogue.name, "boot": "b", "machine": target.machine}, rogue.mark()
    for beat in (own, *beats, own):
        try:
            await rogue.ask(f"ces.v1.hb.{rogue.name}", json.dumps(beat).encode(), ANSWER_S)
        except (OSError, TimeoutError):
            await rogue.back()
    return of_the_broker(len(beats) + 2, before, rogue.seen)


async def _each(rogue: Rogue, tried: Sequence[tuple[str, bytes, str | None]]) -> Tally:
    before = rogue.mark()
    for number, (subject, payload, reply) in enumerate(tried, start=1):
        await _try(rogue, subject, payload, reply)
        if number % TOGETHER == 0:
            with suppress(OSError, TimeoutError):
                await rogue.settled()
    await _settle(rogue)
    return of_the_broker(len(tried), before, rogue.seen)


async def _try(rogue: Rogue, subject: str, payload: bytes, reply: str | None = None) -> None:
    try:
        await rogue.publish(subject, payload, (), reply)
    except (OSError, TimeoutError):
        await rogue.back()


async def _settle(rogue: Rogue) -> None:
    """Nothing that comes of one attack is counted with the next."""
    try:
        await rogue.quiet()
    except (OSError, TimeoutError):
        await rogue.back()
