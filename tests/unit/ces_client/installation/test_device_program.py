"""The program that goes to the device, run as the device runs it."""

from __future__ import annotations

import json
import subprocess
import sys

from ces_client.installation.checks import Facts
from ces_client.installation.device_program import COMMAND, program


def test_a_bare_python_runs_it():
    """``-S``: without the packages that are installed here."""
    order = {"do": "facts", "reach": {"manager": ["127.0.0.1", 1]}, "modules": []}
    run = "import sys; source = sys.stdin.buffer; exec(source.read(int(source.readline())))"
    sent = b"%d\n" % len(program()) + program() + json.dumps(order).encode() + b"\n"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", run], input=sent, capture_output=True, check=True)
    facts = Facts.model_validate(json.loads(done.stdout)["done"])
    assert facts.python == list(sys.version_info[:3])
    assert "Connection refused" in facts.unreached["manager"]


def test_the_command_line_is_always_the_same_and_has_no_secret():
    assert COMMAND.startswith("exec sh -c ")
    assert "token" not in COMMAND


def test_the_launcher_takes_shells_as_they_are():
    sh = subprocess.run(["sh", "-n", "-c", COMMAND], capture_output=True, check=False)
    assert sh.returncode == 0
