"""Nodes ask for the secrets of tasks that they are to start. The answer is sealed to the node's own key, so that the
bus, and whoever listens on it, learns nothing."""

from __future__ import annotations

from ces_common import subjects
from ces_common.bus.port import Bus, Message, RemoteError
from ces_common.messages.secrets import GONE, STARTED, SecretsQuery, TaskSecrets
from ces_common.natsauth.sealed_messages import seal
from ces_common.rates import SenderRate
from ces_manager.database import Database
from ces_manager.errors import Forbidden, NotFound
from ces_manager.job_secrets.delivery import REQUEST_BURST, REQUESTS_PER_S, Started, parcel_for
from ces_manager.job_secrets.keys import SecretKeys, Unreadable
from ces_manager.messaging.answers import answering, problem_of

LARGEST = 1024  # bytes


async def serve_secrets(bus: Bus, database: Database, keys: SecretKeys | None, queue: str) -> None:
    rate = SenderRate(REQUESTS_PER_S, REQUEST_BURST)

    async def tell(message: Message) -> bytes:
        try:
            node = subjects.parse_secrets(message.subject)
            query = SecretsQuery.model_validate_json(message.data)
        except ValueError as error:
            raise RemoteError("malformed", problem_of(error)) from error
        if not rate.allows(node, database.clock.steady()):
            raise RemoteError("too-often", "this node asks for secrets too often")
        with answering("secrets"):
            try:
                parcel = await database.read(lambda tx: parcel_for(tx, keys, node, query))
            except NotFound as error:
                raise RemoteError(GONE, error.detail) from error
            except Started as error:
                raise RemoteError(STARTED, str(error)) from error
            except Forbidden as error:
                raise RemoteError("refused", error.detail) from error
            except Unreadable as error:
                raise RemoteError("unreadable", str(error)) from error
        return seal(parcel.public_key, TaskSecrets(files=parcel.files).encode())

    await bus.serve(subjects.ALL_SECRETS, tell, largest=LARGEST, queue=queue)
