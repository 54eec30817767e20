"""The account of an application's moves."""

from __future__ import annotations

from ces_core.adjustment.ledger import HOUR_S, Ledger


def test_what_was_moved_is_missing_from_the_budget_for_an_hour() -> None:
    ledger = Ledger().moved(100.0, 30.0).moved(200.0, 20.0)
    assert ledger.left(200.0, 100.0) == 50.0
    assert ledger.left(100.0 + HOUR_S, 100.0) == 80.0
    assert ledger.left(200.0 + HOUR_S, 100.0) == 100.0


def test_moves_that_did_not_pay_count_double() -> None:
    ledger = Ledger().moved(100.0, 30.0).moved(200.0, 20.0)
    assert ledger.judged(100.0, False).left(200.0, 100.0) == 20.0
    assert ledger.judged(100.0, True).left(200.0, 100.0) == 50.0
    assert ledger.judged(100.0, False).left(200.0, 10.0) == 0.0


def test_the_latest_moves_are_remembered_and_older_ones_forgotten() -> None:
    ledger = Ledger().moved(0.0, 30.0).moved(HOUR_S, 20.0)
    assert [move.at_s for move in ledger.moves] == [HOUR_S]
    assert ledger.cooling(HOUR_S + 59.0, 60.0)
    assert not ledger.cooling(HOUR_S + 60.0, 60.0)
    assert not Ledger().cooling(0.0, 60.0)
