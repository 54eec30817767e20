"""One browser for all tests of the dashboard's modules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ui_modules import Modules, modules


@pytest.fixture(scope="package")
def ui() -> Iterator[Modules]:
    with modules() as loaded:
        yield loaded
