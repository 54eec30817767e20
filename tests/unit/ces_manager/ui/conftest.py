"""One browser for all tests of the dashboard's modules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ui_modules import Modules, modules


@pytest.fixture(scope="package")
def _ui() -> Iterator[Modules]:
    with modules() as loaded:
        yield loaded


@pytest.fixture(scope="module")
def ui(_ui: Modules) -> Modules:
    """Every module begins in English, whatever the one before it chose."""
    _ui.run('await (await load("show")).setLanguage("en");')
    return _ui
