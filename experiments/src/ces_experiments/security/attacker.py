"""The rogue as a process of its own, so that what is measured beside it is not slowed by its own work: it reads its
target from standard input, and writes what came of it to standard output, both as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import httpx

from ces_experiments.security import bus_attacks, outside_attacks
from ces_experiments.security.connection import Rogue
from ces_experiments.security.fuzzing import Fuzzing
from ces_experiments.security.tally import Tallies, Tally
from ces_experiments.security.target import Target

NICE: Final = 19  # an attacker has a machine of its own: here it takes only what the others leave
API_S: Final = 20.0
ON_THE_BUS: Final[Mapping[str, Callable[[Rogue, Target, random.Random], Awaitable[Tally]]]] = {
    "fuzzed messages": bus_attacks.fuzz,
    "messages under others' names": bus_attacks.forged_names,
    "every verb of JetStream's API": bus_attacks.jetstream,
    "the same, as where to reply": bus_attacks.jetstream_by_reply,
    "subjects and inboxes of services": bus_attacks.subjects_of_services,
    "subjects of the system account": bus_attacks.system,
    "subscriptions to what others hear": bus_attacks.listening,
    "very large messages": bus_attacks.large_messages,
    "lies about others' workers and networks": bus_attacks.lies,
    "secrets of tasks on other nodes": bus_attacks.secrets_of_others,
    "a second machine with its credential": bus_attacks.second_machine,
}
AT_THE_API: Final[Mapping[str, outside_attacks.OutsideAttack]] = {
    "API without a token, and with wrong ones": outside_attacks.without_rights,
    "joining and renewing in others' names": outside_attacks.joining,
}
BEFORE_IT: Final[Mapping[str, Callable[[Target, random.Random], Awaitable[Tally]]]] = {
    "connections that say nothing": outside_attacks.silent_connections,
    "TLS handshakes that never go on": outside_attacks.slow_handshakes,
}
UNANSWERED: Final = (
    "every verb",
    "the same, as",
    "subjects",
    "messages under",
    "subscriptions",
    "API without",
    "lies",
    "secrets",
)
"""Attacks to which nothing but a refusal may come."""


async def attacked(target: Target) -> dict[str, Any]:
    """Rounds of every attack, in an order drawn for each, until the time is up; the first one is whole in any case."""
    tallies, rounds, chance, until = Tallies(), 0, random.Random(target.chance), time.monotonic() + target.seconds
    spans: list[tuple[str, float, float]] = []  # of each attack, on the clock that all processes of a machine share
    rogue = Rogue(target.nats_url, target.node, target.credentials, target.tls())
    await rogue.open()
    tls = target.tls()
    async with httpx.AsyncClient(base_url=target.api_url, timeout=API_S, verify=True if tls is None else tls) as http:
        while time.monotonic() < until:
            rounds += 1
            attacks = [*ON_THE_BUS, *AT_THE_API, *BEFORE_IT]
            chance.shuffle(attacks)
            for attack in attacks:
                if rounds > 1 and time.monotonic() >= until:
                    break
                began = time.monotonic()
                try:
                    if attack in ON_THE_BUS:
                        tally = await ON_THE_BUS[attack](rogue, target, chance)
                    elif attack in AT_THE_API:
                        tally = await AT_THE_API[attack](http, target, chance)
                    else:
                        tally = await BEFORE_IT[attack](target, chance)
                except (httpx.TransportError, OSError, TimeoutError) as error:
                    tallies.wrong[f"{attack}: the other side was away: {type(error).__name__}"] += 1
                    continue
                finally:
                    spans.append((attack, began, time.monotonic()))
                tallies.add(attack, tally)
    await rogue.close()
    for attack, tally in tallies.of.items():
        if attack.startswith(UNANSWERED) and tally.answered:
            tallies.wrong[f"{attack}: answered"] += tally.answered
    return {"rounds": rounds, "attacks": tallies.rows(), "wrong": dict(tallies.wrong), "spans": spans}


async def run(target: Target) -> dict[str, Any]:
    return await (Fuzzing(target).run() if target.each else attacked(target))


def main() -> None:
    os.nice(NICE)
    target = Target.model_validate_json(sys.stdin.read())
    sys.stdout.write(json.dumps(asyncio.run(run(target))))


if __name__ == "__main__":
    main()
