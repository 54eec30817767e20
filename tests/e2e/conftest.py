"""One cluster for all tests of a worker that leave it as they found it, and the dashboard of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from dashboard_page import Chromium, Open, Tab, browser, dashboard, tab
from fault_cluster import FaultCluster, running, star, wait_for
from waiting import answers

from ces_testbed.services import SCHEDULER


class SharedCluster:
    """One cluster for all tests of a worker that leave it as they found it. They come in a row (``worker_groups``), and
    it ends with the last of them, since an idle cluster takes time from the tests that come after."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._cluster: FaultCluster | None = None

    def get(self, folders: pytest.TempPathFactory) -> FaultCluster:
        if self._cluster is None:
            allowed = {"CES_MAX_APPLICANTS": "4"}
            started = running("flt", folders.mktemp("flt"), star(4), settings=allowed)
            self._cluster = self._open.enter_context(started)
        return self._cluster

    def end(self) -> None:
        self._cluster = None
        self._open.close()


SHARED = SharedCluster()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is None or (nextitem.path != item.path and "_shared" not in nextitem.fixturenames):
        SHARED.end()


def pytest_sessionfinish() -> None:
    SHARED.end()  # of a run that was broken off


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> FaultCluster:
    return SHARED.get(tmp_path_factory)


@pytest.fixture
def cluster(_shared: FaultCluster) -> Iterator[FaultCluster]:
    """A running cluster of four hosts around a switch. After the test everything must be released and in order."""
    yield _shared
    _shared.check()


@pytest.fixture(scope="module")
def _haste(_shared: FaultCluster) -> Iterator[Callable[[], None]]:
    """Sees to it that the scheduler may resize a job each second, until the tests of a file are over."""
    starts = 0

    def restart(env: Mapping[str, str]) -> int:
        _shared.cluster.restart(SCHEDULER, env)
        wait_for(lambda: answers(_shared.cluster.layout.ready_url(SCHEDULER)), "the scheduler is ready")
        return _shared.cluster.supervisor.starts(SCHEDULER)

    def hasten() -> None:
        nonlocal starts
        if _shared.cluster.supervisor.starts(SCHEDULER) != starts:  # one that was killed is as it was before
            starts = restart({"CES_RESIZE_S": "1"})

    yield hasten
    restart({})


@pytest.fixture
def resizing(cluster: FaultCluster, _haste: Callable[[], None]) -> FaultCluster:
    """Jobs may be resized each second."""
    _haste()
    return cluster


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that workers can look into, whoever they run as; the one that pytest gives is private."""
    with tempfile.TemporaryDirectory(prefix="ces-open-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with browser() as started:
        yield started


@pytest.fixture
def opened(cluster: FaultCluster, chromium: Chromium) -> Open:
    """Opens the page as ``ces dashboard`` does, with the first token or another one."""

    @contextmanager
    def open_page(token: str | None = None, heading: str = "Overview", **options: Any) -> Iterator[Tab]:
        environment = {"CES_URL": cluster.cluster.url, "CES_TOKEN": token or cluster.cluster.token}
        with dashboard(environment) as address, tab(chromium, address, **options) as made:
            made.heading(heading)
            yield made

    return open_page
