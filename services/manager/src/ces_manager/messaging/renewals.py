"""Nodes renew their credentials over the bus, long before these end."""

from __future__ import annotations

from ces_common import subjects
from ces_common.bus.port import Bus, Message, RemoteError
from ces_common.messages.agent_queries import Credential, CredentialQuery
from ces_common.rates import SenderRate
from ces_manager.database import Database
from ces_manager.errors import Forbidden, Invalid
from ces_manager.messaging.answers import answering, problem_of
from ces_manager.nodes.credentials import RENEWAL_BURST, RENEWALS_PER_S, Issuer, check_member

LARGEST = 1024  # bytes


async def serve_renewals(bus: Bus, database: Database, issuer: Issuer, queue: str) -> None:
    rate = SenderRate(RENEWALS_PER_S, RENEWAL_BURST)

    async def renew(message: Message) -> bytes:
        try:
            node = subjects.parse_renewal(message.subject)
            key = CredentialQuery.model_validate_json(message.data).public_key
        except ValueError as error:
            raise RemoteError("malformed", problem_of(error)) from error
        if not rate.allows(node, database.clock.steady()):
            raise RemoteError("too-often", "this node asks for another credential too often")
        with answering("renewal"):
            try:
                await database.read(lambda tx: check_member(tx, node, key))
                return Credential(node=node, jwt=issuer.issue(node, key)).encode()
            except (Forbidden, Invalid) as error:
                raise RemoteError("refused", error.detail) from error

    await bus.serve(subjects.ALL_RENEWALS, renew, largest=LARGEST, queue=queue)
