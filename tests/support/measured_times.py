"""How long each test takes and how much CPU time it uses: ``CES_TEST_TIMES=FILE`` appends a line for each test.

Columns: test, wall seconds, CPU seconds (this process and its descendants), worker, outcome. The first test that uses a
fixture of its module or session pays for it. A large difference between wall and CPU time on an idle machine means that
the test waits.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest


class TimesPlugin:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._outcomes: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        wall, cpu = time.monotonic(), _cpu_seconds()
        result = yield
        wall, cpu = time.monotonic() - wall, _cpu_seconds() - cpu
        outcome = self._outcomes.pop(item.nodeid, "")
        with self._file.open("a", newline="") as file:
            csv.writer(file).writerow([item.nodeid, f"{wall:.2f}", f"{cpu:.2f}", self._worker, outcome])
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome


def _cpu_seconds() -> float:
    """User and system time of this process, its living descendants, and all that it has waited for."""
    total = sum(os.times()[:4])
    for process in psutil.Process().children(recursive=True):
        try:
            total += sum(process.cpu_times()[:4])
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total
