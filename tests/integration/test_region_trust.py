"""What crosses between regions is sums and one's own jobs, and nobody is believed who says he is another."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
from live_regions import LiveRegion, one_core, running
from nats.aio.msg import Msg
from region_servers import World as Servers
from region_servers import listener, running_servers
from waiting import until

from ces_common import subjects
from ces_common.bus.port import RequestTimeout
from ces_common.messages.regions import BidAnswer, FateAnswer, Hold, StatusQuery, TriesQuery
from ces_common.states import JobState
from ces_federation.seals import key_of, seal, unseal
from ces_federation.wire import Wire
from ces_manager.jobs.commands import cancel_job

ROOMS = {"home": (1, 100), "far": (2, 4000)}
TRUST: dict[str, Any] = {"accept": ["default"], "tenants": {"default": "guests"}}
FILE = {"file.*"}  # a job's own file, as it was submitted
SUMS = {"cpu", "memory", "gpu"}
ALLOWED: dict[str, set[str]] = {
    "summary": {"epoch", "nodes", "rooms", "queued", "wait_s", "datasets", "region", "protocol", "made_at", "block"}
    | {
        "accepts",
        "cards",
        "borders",
        "gateway",
        *(f"{of}.{what}" for of in ("free", "total", "largest") for what in SUMS),
    },
    "bid": FILE,
    "answer to bid": {"feasible", "composite", "refusal"},
    "hold": {"job", "attempt", *FILE},
    "answer to hold": {"fate", "epoch", "remote", "reason"},
    "commit": {"job", "attempt", "remote"},
    "answer to commit": {"fate", "epoch", "remote", "reason"},
    "release": {"job", "attempt", "remote"},
    "answer to release": {"fate", "epoch", "remote", "reason"},
    "status": {"items.job", "items.attempt", "items.remote"},
    "answer to status": {"items.fate", "items.epoch", "items.remote", "items.reason"}
    | {f"statuses.{field}" for field in ("state", "reason", "started_at", "finished_at")},
    "tries": {"jobs"},
    "answer to tries": {"epoch", "items.job", "items.attempt", "items.remote", "parts"}
    | {f"parts.{field}" for field in ("job", "attempt", "remote", "part")},
}


def token(one: str, other: str) -> str:
    return f"a secret of {'-'.join(sorted((one, other)))} and of no third one"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with running_servers(tmp_path_factory.mktemp("trust"), ["home", "far", "evil"]) as made:
        yield made


def fields(value: Any, prefix: str = "") -> set[str]:
    """The paths of all values; what a job's file holds is one path."""
    if prefix == "file.":
        return FILE
    if isinstance(value, dict):
        return set().union(*(fields(each, f"{prefix}{name}.") for name, each in value.items()))
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return set().union(*(fields(each, prefix) for each in value if each is not None))
    return {prefix.rstrip(".")} if value is not None else set()


def opened(seen: list[Msg]) -> dict[str, list[Any]]:
    """By operation; an answer is named after its question."""
    asked: dict[str, str] = {}
    found: dict[str, list[Any]] = defaultdict(list)
    for message in seen:
        to, by, operation, id_ = subjects.parse_between_regions(message.subject)
        text = unseal(key_of(token(to, by)), message.subject, message.data, time.time())
        if operation == "answer" and not text:  # a sign that one is made, on a machine that takes its time
            continue
        said = json.loads(text)
        if operation == "answer":
            operation = f"answer to {asked[id_]}"
        else:
            asked[id_] = operation
        found[operation].append(said)
    return found


async def ready(*regions: LiveRegion) -> None:
    def hear() -> bool:
        return all(len(each.federation.board.usable(time.monotonic())) == len(regions) - 1 for each in regions)

    await until(hear)


async def test_only_sums_and_ones_own_jobs_cross(servers: Servers, tmp_path: Path) -> None:
    async with running(servers, tmp_path / "regions", ROOMS, **TRUST) as regions:
        home, far = regions["home"], regions["far"]
        seen: list[Msg] = []
        hub = await listener(servers)
        await ready(home, far)

        async def note(message: Msg) -> None:
            seen.append(message)

        await hub.subscribe(">", cb=note)
        await hub.flush()
        own = await far.submit(one_core("not-of-others", regions=[]))
        kept = await home.submit(one_core("kept-at-home", regions=[]))
        job = await home.submit(one_core("leaves"))
        await until(lambda: home.state(job) is JobState.ELSEWHERE)
        await until(lambda: any(".status." in message.subject for message in seen))
        await home.database.write(lambda tx: cancel_job(tx, job))
        await until(lambda: not far.guests())
        await hub.drain()
        said = opened(seen)
        assert {"summary", "bid", "hold", "commit", "status", "release"} <= said.keys()
        for operation, messages in said.items():
            assert set().union(*map(fields, messages)) <= ALLOWED[operation], operation
            text = json.dumps(messages)
            for word in (own, kept, "not-of-others", "kept-at-home", "homen0", "farn0", "farn1", "127.0.0.1"):
                assert word not in text, (operation, word)
        blocks = {summary["block"] for summary in said["summary"]}
        assert blocks == {"10.64.0.0/16", "10.65.0.0/16"}
        [(guest, row)] = [each for each in far.all_guests() if each[0].home_job == job]
        assert (row.tenant, guest.home) == ("guests", "home")


async def test_a_forged_hold_is_refused_whoever_forges_it(servers: Servers, tmp_path: Path) -> None:
    """By another region with all its keys, in the home's name or with a token of its own, and by one who has heard a
    real one."""
    async with running(servers, tmp_path / "regions", ROOMS, **TRUST) as regions:
        far = regions["far"]
        await ready(regions["home"], far)
        hold = Hold(job="forged", attempt=1, file=one_core("forged")).encode()
        evil = await servers.regions["evil"].master()
        heard = far.federation.wire.heard_of("home")

        async def send(by: str, key: str, sealed_for: str | None = None) -> None:
            subject = subjects.between_regions("far", by, "hold", "1")
            await evil.publish(subject, seal(key_of(key), sealed_for or subject, hold, time.time()))

        await send("home", token("home", "far"))  # even with the pair's token: the hub knows who speaks
        await send("evil", token("evil", "far"))  # far trusts no region of that name
        await send("evil", token("home", "far"), subjects.between_regions("far", "home", "hold", "1"))
        await evil.flush()
        # whoever stole the home's wire, and not the token
        wire = Wire(regions["home"].wire, "home", {"far": key_of("another secret of thirty-two letters")})
        await wire.start()
        with pytest.raises(RequestTimeout):
            await wire.ask("far", "hold", hold, 1.0)
        assert far.guests() == []
        assert "forged" not in {row.name for _, row in far.all_guests()}
        assert far.federation.wire.heard_of("home") >= heard
        await evil.close()


async def test_of_anothers_jobs_a_region_learns_nothing(servers: Servers, tmp_path: Path) -> None:
    rooms = {"home": (1, 100), "far": (2, 4000), "evil": (1, 100)}
    async with running(servers, tmp_path / "regions", rooms, **TRUST) as regions:
        home, far, evil = regions["home"], regions["far"], regions["evil"]
        await ready(home, far, evil)
        job = await home.submit(one_core("of-home"))
        await until(lambda: home.state(job) is JobState.ELSEWHERE)
        [(guest, _)] = far.guests()
        about = {"job": job, "attempt": 1, "remote": guest.job}
        status = await evil.federation.wire.ask("far", "status", StatusQuery(items=[about]).encode(), 10.0)
        assert json.loads(status)["items"][0]["fate"] == "unknown"
        tries = await evil.federation.wire.ask("far", "tries", TriesQuery(jobs=[job]).encode(), 10.0)
        assert json.loads(tries)["items"] == []
        released = await evil.federation.wire.ask("far", "release", json.dumps(about).encode(), 10.0)
        assert json.loads(released)["fate"] == "unknown"
        for word in ("logs", "flows"):
            with suppress(RequestTimeout):
                answer = await evil.federation.wire.ask("far", word, json.dumps(about | {"task": "w-0"}).encode(), 1.0)
                raise AssertionError(answer)
        [(_, row)] = far.guests()
        assert row.state not in (JobState.CANCELLED, JobState.FAILED)


async def test_by_default_nothing_is_accepted(servers: Servers, tmp_path: Path) -> None:
    async with running(servers, tmp_path / "regions", ROOMS) as regions:
        home, far = regions["home"], regions["far"]
        await ready(home, far)
        assert home.federation.board.usable(time.monotonic())["far"].accepts == []
        file = one_core("unwelcome")
        job = await home.submit(file)
        bid = BidAnswer.model_validate_json(
            await home.federation.wire.ask(
                "far", "bid", json.dumps({"file": file.model_dump(mode="json")}).encode(), 10
            )
        )
        held = FateAnswer.model_validate_json(
            await home.federation.wire.ask("far", "hold", Hold(job=job, attempt=1, file=file).encode(), 10)
        )
        assert (bid.feasible, held.fate, held.remote) == (False, "released", None)
        await until(lambda: home.state(job) is JobState.QUEUED and home.not_taken(job) != {})
        assert home.not_taken(job) == {"far": "it accepts no jobs of tenant default"}
        assert far.guests() == []


async def test_nothing_is_placed_where_addresses_overlap(servers: Servers, tmp_path: Path) -> None:
    async with running(servers, tmp_path / "regions", ROOMS, block=IPv4Network("10.64.0.0/16"), **TRUST) as regions:
        home, far = regions["home"], regions["far"]
        job = await home.submit(one_core("stays"))
        await until(lambda: "overlap" in home.not_taken(job).get("far", ""))
        assert home.state(job) is JobState.QUEUED
        assert far.guests() == []
