"""What an agent makes of the credentials that it is sent."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from ces_common import subjects
from ces_common.bus.port import Callback, NoResponder
from ces_common.messages.agent_queries import Credential, CredentialQuery
from ces_common.natsauth import Credentials, UserKey, init_trust, issue_user, new_user_key
from ces_common.tls.pins import trusting
from ces_edge_agent.enrolment import Membership
from ces_edge_agent.renewal import ENDLESS_S, Renewal, life_s

SOON = 60.0  # patience on a busy machine, not a wait


class FakeBus:
    """``answers``: one for each request, then none."""

    connected = True

    def __init__(self, answers: list[str | Exception]) -> None:
        self.answers, self.asked, self.used = answers, list[str](), list[str]()
        self.all_given = asyncio.Event()

    async def request(self, subject: str, data: bytes = b"") -> bytes:
        self.asked.append(f"{subject} {CredentialQuery.model_validate_json(data).public_key}")
        if not self.answers:
            self.all_given.set()
            raise NoResponder("no more")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Credential(node="n1", jwt=answer).encode()

    def on_refused(self, callback: Callback) -> None: ...

    async def use(self, credentials: Credentials) -> None:
        self.used.append(credentials.jwt)


async def test_what_is_of_another_key_is_not_taken_and_asked_for_again(tmp_path: Path) -> None:
    key, other = new_user_key(), new_user_key()
    signing_key = init_trust(tmp_path / "trust").signing_key("agent")

    def issued(to: UserKey, life: float) -> str:
        return issue_user(signing_key, "n1", to.public, life)

    membership = Membership(tmp_path)
    membership.save(Credentials(issued(key, 1), key.seed), ["nats://127.0.0.1:4222"])
    good = issued(key, 2)
    bus = FakeBus([NoResponder("not yet"), issued(other, 1), "nonsense", good])
    renewal = Renewal(bus, membership, "n1", "http://127.0.0.1:1", trusting(None), asyncio.get_running_loop().time)
    task = asyncio.create_task(renewal.run())
    async with asyncio.timeout(SOON):
        await bus.all_given.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert bus.used == [good]
    assert membership.held() == Credentials(good, key.seed)
    assert set(bus.asked) == {f"{subjects.renewal('n1')} {key.public}"}


def test_a_credential_of_before_that_never_ends_is_renewed_too(tmp_path: Path) -> None:
    endless = issue_user(init_trust(tmp_path / "trust").signing_key("agent"), "n1", new_user_key().public)
    assert life_s(endless) == life_s("nonsense") == ENDLESS_S
