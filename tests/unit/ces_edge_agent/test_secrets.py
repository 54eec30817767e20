"""The agent asks for secrets: what it makes of each answer."""

from __future__ import annotations

import pytest
from agent_parts import worker
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.bus.port import Message, RemoteError
from ces_common.messages.secrets import GONE, STARTED, SecretsQuery, TaskSecrets
from ces_common.natsauth import UserKey, new_user_key
from ces_common.natsauth.sealed_messages import seal
from ces_edge_agent.ports import Refused
from ces_edge_agent.secrets import Secrets, SecretsAway, StartedBefore

WORKER = worker("a", secrets=["hub"])


class Manager:
    """Answers with what it is told to."""

    def __init__(self) -> None:
        self.bus = MemoryBus(MemoryBroker())
        self.key: UserKey = new_user_key()
        self.answer: bytes | RemoteError = self.sealed({"hub": b"marker", "more": b"x"})
        self.asked: list[Message] = []

    def sealed(self, files: dict[str, bytes], public: str | None = None) -> bytes:
        return seal(public or self.key.public, TaskSecrets(files=files).encode())

    async def tell(self, message: Message) -> bytes:
        self.asked.append(message)
        if isinstance(self.answer, RemoteError):
            raise self.answer
        return self.answer

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.bus, "n1", self.key.seed)


@pytest.fixture
async def manager() -> Manager:
    made = Manager()
    await made.bus.connect()
    await made.bus.serve(subjects.ALL_SECRETS, made.tell)
    return made


async def test_it_asks_under_its_own_name_for_one_start_and_gets_what_the_worker_names(manager: Manager) -> None:
    assert await manager.secrets.of(WORKER) == {"hub": b"marker"}
    [asked] = manager.asked
    assert asked.subject == "ces.v1.secrets.n1"
    assert SecretsQuery.model_validate_json(asked.data) == SecretsQuery(allocation="a", incarnation=1)


async def test_for_a_worker_without_secrets_nobody_is_asked(manager: Manager) -> None:
    assert await manager.secrets.of(worker("a")) == {}
    assert manager.asked == []


async def test_one_that_is_gone_ends_the_start_and_anything_else_has_it_wait(manager: Manager) -> None:
    manager.answer = RemoteError(GONE, "no secret hub in tenant red")
    with pytest.raises(Refused, match=r"^no secret hub in tenant red$"):
        await manager.secrets.of(WORKER)
    manager.answer = RemoteError(STARTED, "a has started on node n1 already")
    with pytest.raises(StartedBefore, match=r"^a has started on node n1 already$"):
        await manager.secrets.of(WORKER)
    for answer, said in (
        (RemoteError("unavailable", "the database does not answer"), "^the database does not answer$"),
        (manager.sealed({"other": b"marker"}), "^the manager's answer lacks hub$"),
        (manager.sealed({"hub": b"marker"}, new_user_key().public), "sealed for another key"),
        (b"rubbish", "sealed for another key, or is damaged"),
        (seal(manager.key.public, b'{"files": {"hub": "marker, no"}}'), "^the manager's answer cannot be read$"),
    ):
        manager.answer = answer
        with pytest.raises(SecretsAway, match=said) as away:
            await manager.secrets.of(WORKER)
        assert "marker" not in str(away.value)


async def test_without_a_manager_it_says_so() -> None:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    with pytest.raises(SecretsAway, match=r"^no manager answers$"):
        await Secrets(bus, "n1", new_user_key().seed).of(WORKER)
