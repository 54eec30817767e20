"""The credentials of nodes for the bus: they end, and are given again to the key that the node has joined with."""

from __future__ import annotations

from ces_common.db.tables import NodeRow
from ces_common.db.uow import ReadTx
from ces_common.natsauth import SigningKey, issue_user
from ces_common.subjects import BadName
from ces_manager.errors import Forbidden, Invalid

RENEWALS_PER_S, RENEWAL_BURST = 1.0, 10  # of one node, or of one key


class Issuer:
    """``life_s``: for how long a credential is good."""

    def __init__(self, signing_key: SigningKey, life_s: float) -> None:
        self._signing_key, self._life_s = signing_key, life_s

    def issue(self, node: str, public_key: str) -> str:
        """The JWT that lets the holder of the key act as that node. Raises Invalid."""
        try:
            return issue_user(self._signing_key, node, public_key, self._life_s)
        except BadName as error:
            raise Invalid("name", str(error)) from error
        except ValueError as error:
            raise Invalid("public_key", str(error)) from error


def check_member(tx: ReadTx, node: str, public_key: str) -> None:
    """Raises Forbidden unless the node is a member by that key."""
    row = tx.session.get(NodeRow, node)
    remedy = "delete the agent's state folder and let it join with a new token"
    if row is None:
        raise Forbidden(f"no node {node} has joined, or it was forgotten: {remedy} (ces node token)")
    if row.public_key != public_key:
        raise Forbidden(
            f"another device has joined in the place of node {node}: to put this one back, {remedy} "
            f"(ces node token --node {node})"
        )
