"""Random instances of the benchmarks' regimes."""

from __future__ import annotations

import pytest

from ces_core.model.errors import ProblemError
from ces_core.model.generate import random_instance


def test_an_unknown_regime_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ProblemError, match="regime: must be thesis, tight, scarce, not 'loose'") as caught:
        random_instance("loose")
    assert caught.value.field == "regime"
