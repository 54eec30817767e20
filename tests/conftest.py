"""What a test may need from the machine, and what happens where it is absent.

``@pytest.mark.needs("root", "engine")`` skips the test with the reason named; where ``CES_REQUIRE`` lists the
thing, its absence is a failure, so that a machine that promises to run everything cannot quietly run less.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from measured_times import TimesPlugin
from worker_groups import Scheduler, put_in_order

# Timings decide no test: a busy machine, or the first use of something, is no failure.
settings.register_profile("ces", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ces")


def _root() -> str | None:
    if sys.platform != "linux":
        return "needs Linux"
    return None if os.geteuid() == 0 else "needs root"


def _engine() -> str | None:
    from ces_testbed.capability import why_no_engine

    return why_no_engine()


def _postgres() -> str | None:
    """Postgres for tests comes as a container (testcontainers), so an engine is what it takes."""
    return _engine()


def _postgres_pair() -> str | None:
    from postgres_pair import binaries

    return None if binaries() else "needs the binaries of pgserver, where the user of the servers can run them"


def _torch() -> str | None:
    from importlib.util import find_spec

    lacking = [name for name in ("torch", "gymnasium") if not find_spec(name)]
    return f"{' and '.join(lacking)} not installed (make install-train)" if lacking else None


def _compose() -> str | None:
    """Both generations of compose will do."""
    if shutil.which("docker-compose"):
        return None
    plugin = ["docker", "compose", "version"]
    there = shutil.which("docker") and subprocess.run(plugin, capture_output=True).returncode == 0
    return None if there else "neither docker compose nor docker-compose is installed"


def _topologies() -> str | None:
    """GraphML files of the Internet Topology Zoo."""
    root = os.environ.get("CES_DATA_DIR", "")
    there = root and next(Path(root, "topologies").rglob("*.graphml"), None)
    return None if there else "CES_DATA_DIR names no folder with topologies/*.graphml"


def _dl_jobs() -> str | None:
    """Published traces of training jobs, with measured speeds."""
    root = os.environ.get("CES_DATA_DIR", "")
    there = root and Path(root, "dl-jobs", "elasticflow-itp", "195job.csv").is_file()
    return None if there else "CES_DATA_DIR names no folder with dl-jobs/"


def _arm64() -> str | None:
    import arm64

    return arm64.missing()


def _wireguard() -> str | None:
    """The program, which runs wherever there are TUN devices."""
    from ces_edge_agent.dataplane.wireguard.implementations import can_run_program

    return None if can_run_program() else "wireguard-go is not installed, or /dev/net/tun is not there"


def _wireguard_module() -> str | None:
    script = "ip link add ces-trial type wireguard"
    tried = subprocess.run(["unshare", "--net", "sh", "-c", script], capture_output=True, check=False)
    return None if tried.returncode == 0 else "the kernel has no WireGuard"


def _taps() -> str | None:
    from ces_testbed.taps import why_no_taps

    return why_no_taps()


def _command(name: str) -> Callable[[], str | None]:
    return lambda: None if shutil.which(name) else f"{name} is not installed"


PROBES: dict[str, Callable[[], str | None]] = {
    "root": _root,
    "engine": _engine,
    "postgres": _postgres,
    "postgres-pair": _postgres_pair,
    "torch": _torch,
    "compose": _compose,
    "topologies": _topologies,
    "dl-jobs": _dl_jobs,
    "arm64": _arm64,
    "iperf3": _command("iperf3"),
    "prometheus": lambda: _command("prometheus")() or _command("promtool")(),
    "browser": _command("chromium"),
    "ssh": _command("ssh"),
    "taps": _taps,
    "wireguard": _wireguard,
    "wireguard-module": _wireguard_module,
}


@cache
def missing(what: str) -> str | None:
    """Why this machine lacks ``what``; None where it is there."""
    return PROBES[what]()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell has it for what it starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # programs that tests start would not hear a Ctrl-C
    if file := os.environ.get("CES_TEST_TIMES"):
        config.pluginmanager.register(TimesPlugin(Path(file).absolute()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    config.option.loadscopereorder = False
    return Scheduler(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Few files have tests that run alone, and the others need not be imported: that takes a quarter of a minute."""
    if config.option.markexpr.startswith("alone") and collection_path.match("test_*.py"):
        return "pytest.mark.alone" not in collection_path.read_text() or None
    return None


COMPILING = {"compiled", "policy_compiled", "training_compiled"}
"""Fixtures that compile where nothing is kept compiled, which takes as long as it takes: that is no test's time."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if COMPILING & set(getattr(item, "fixturenames", ())) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(func_only=True))
    if hasattr(config, "workerinput"):  # in a worker of pytest-xdist; alone, pytest keeps the order of the files
        put_in_order(items, Path(__file__).parent)


@pytest.fixture(scope="session")
def policy_compiled() -> None:
    """What solvers use that ask a policy, and the quickest one."""
    from evolving_policies import problems

    from ces_core.search.greedy import GREEDY

    problems(range(2))
    problems(range(2), solver=GREEDY)


@pytest.fixture(scope="session")
def training_compiled(policy_compiled: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """And what imitation uses that teaches them."""
    from compile_training import KINDS, compile_ahead

    compile_ahead("placement", KINDS["placement"][1:], tmp_path_factory.mktemp("compiled"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    required = {name for name in os.environ.get("CES_REQUIRE", "").split(",") if name}
    for mark in item.iter_markers("needs"):
        for what in mark.args:
            reason = missing(what)
            if reason is None:
                continue
            if what in required:
                pytest.fail(f"CES_REQUIRE names {what}, but: {reason}", pytrace=False)
            pytest.skip(reason)
