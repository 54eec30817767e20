"""AFS-L, by hand."""

from __future__ import annotations

from malleable_jobs import CONCAVE, job, moment, running

from ces_core.malleable.peers.afs import afs


def test_who_is_done_sooner_starts_first() -> None:
    assert afs(moment(running(job("long", 100.0)), running(job("short", 10.0)), gpus=1)).sizes == {"short": 1}


def test_then_everybody_starts() -> None:
    assert afs(moment(running(job("long", 100.0)), running(job("short", 10.0)), gpus=2)).sizes == {
        "short": 1,
        "long": 1,
    }


def test_more_goes_to_the_shorter_unless_the_longer_gains_much() -> None:
    """Of one GPU more, the longer gains a half of what it has then; the shorter gains 0.6 of what it has now."""
    active = [running(job("long", 100.0)), running(job("short", 10.0, rates=CONCAVE))]
    assert afs(moment(*active, gpus=3)).sizes == {"short": 2, "long": 1}


def test_the_longer_wins_where_the_shorter_hardly_gains() -> None:
    active = [running(job("long", 100.0)), running(job("short", 10.0, rates={1: 1.0, 2: 1.1}))]
    assert afs(moment(*active, gpus=3)).sizes == {"short": 1, "long": 2}
