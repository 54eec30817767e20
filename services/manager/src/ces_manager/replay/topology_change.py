"""Replacing the topology so that a replay knows every one that there was."""

from __future__ import annotations

from ces_common.db.history_tables import KeyframeRow
from ces_common.db.uow import WriteTx
from ces_common.messages.api import TopologyFile
from ces_manager.network.topology import put_topology
from ces_manager.replay.keyframes import last_kept, past_of, rewired_since
from ces_manager.replay.past import packed


def rewire(tx: WriteTx, file: TopologyFile) -> None:
    """Replace all links and media. A topology that no keyframe knows yet is kept first: its event told numbers only.
    Raises Invalid."""
    kept = last_kept(tx)
    if kept is not None and rewired_since(tx, kept):
        past = past_of(tx, tx.now)
        tx.session.merge(KeyframeRow(sequence=past.sequence, time=tx.now, body=packed(past)))
    put_topology(tx, file)
