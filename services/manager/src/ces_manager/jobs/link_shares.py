"""What held flows take of each link of their paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sqlalchemy import delete, insert

from ces_common.db.tables import HopRow, ReservationRow
from ces_common.db.uow import WriteTx


def reserve_links(tx: WriteTx, flows: Iterable[ReservationRow]) -> None:
    """Reserve each flow's bandwidth on every link of its path."""
    take_links(tx, [(flow.number, hop, flow.rate) for flow in flows for hop in pairwise(flow.path)])


def take_links(tx: WriteTx, taken: Sequence[tuple[int, tuple[str, str], int]]) -> None:
    """``taken``: a flow's number, a link, and the rate there."""
    shares = [{"number": number, "src": src, "dst": dst, "rate": rate} for number, (src, dst), rate in taken]
    if shares:
        tx.session.execute(insert(HopRow), shares)


def release_links(tx: WriteTx, flows: Iterable[ReservationRow]) -> None:
    """Release the flows' bandwidth on all links; the reservations stay held."""
    tx.session.execute(delete(HopRow).where(HopRow.number.in_([flow.number for flow in flows])))
