"""What services import when they start: each second of it is paid at every start, and several times on small boards."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LATE = {
    "ces_manager": ["networkx", "numpy"],
    "ces_scheduler": ["opentelemetry", "networkx", "scipy.optimize", "onnxruntime", "sqlalchemy"],
    "ces_network_ctl": ["opentelemetry", "numpy", "sqlalchemy"],
    "ces_compute_ctl": ["opentelemetry", "numpy", "sqlalchemy"],
    "ces_edge_agent": ["opentelemetry", "numpy", "sqlalchemy", "onnxruntime", "ces_common.jobfile"],
}
START = """
import gc, json, runpy, sys
import ces_common.service
def run_service(*given):
    print(json.dumps([gc.isenabled(), [name for name in LATE if name in sys.modules]]))
ces_common.service.run_service = run_service
runpy.run_module(SERVICE, run_name="__main__")
"""


@pytest.mark.parametrize("service", LATE)
def test_a_service_starts_without_what_it_may_need_later_and_looks_for_no_garbage(service: str) -> None:
    source = START.replace("LATE", str(LATE[service])).replace("SERVICE", repr(service))
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [False, []]
