"""Borrowed arrays are the same arrays, and their owners are unaffected."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pytest

from ces_core.compiled.jit import COMPILED, compiled, lent
from ces_core.model.problem import FloatArray


class Account(NamedTuple):
    rate: float
    sums: FloatArray


@compiled
def double(account: Account) -> float:
    account = lent(account)
    for i in range(len(account.sums)):
        account.sums[i] *= account.rate
    return float(account.sums[-1])


def test_what_is_lent_is_seen_written_to_and_kept_by_its_owner() -> None:
    account = Account(2.0, np.arange(4.0))
    holders = sys.getrefcount(account.sums)
    answers = [double(account) for _ in range(3)]
    still = sys.getrefcount(account.sums)
    assert answers == [6.0, 12.0, 24.0]
    assert still == holders
    np.testing.assert_array_equal(account.sums, 8.0 * np.arange(4.0))


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here, and so nothing counted")
def test_a_tuple_of_tuples_is_not_lent() -> None:
    @compiled
    def inside(accounts: tuple[Account, Account]) -> float:
        return float(lent(accounts)[0].rate)

    account = Account(2.0, np.arange(4.0))
    with pytest.raises(Exception, match="lent takes a tuple of arrays and numbers"):
        inside((account, account))
