"""Errors for people and for scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import httpx
import pytest
from ces_command import ces


@pytest.mark.parametrize("words", [["get", "jobbs"], ["submit"], ["nothing"], ["node", "token", "--ttl", "1"]])
def test_wrong_usage_is_json_too(words):
    error = json.loads(ces(*words, "-o", "json", code=2).stdout)["error"]
    assert error["type"] == "ces:usage"
    assert error["detail"]
    assert "Usage" in ces(*words, code=2).stderr


def test_errors_as_json_stand_alone_on_standard_output():
    code = "import stamina; stamina.set_testing(True, attempts=3); from ces_client.cli import main; main()"
    command = [sys.executable, "-c", code, "get", "jobs", "-o", "json"]
    environment = os.environ | {"CES_URL": "http://127.0.0.1:1", "CES_TOKEN": "t"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["status"] == 503
    assert done.stderr == ""


def test_refusals_and_silence_end_with_two(connected, samples, job_file):
    wrong = [{"field": "tasks.0.image", "problem": "not allowed [x]", "remedy": "use another"}]
    connected.on("POST", "jobs", samples.problem(422, "Invalid input", "see fields", wrong))
    said = ces("submit", job_file, code=2).stderr
    assert "error: Invalid input: see fields" in said
    assert "tasks.0.image: not allowed [x]\n    remedy: use another" in said
    connected.on("GET", "jobs", httpx.ConnectError("Connection refused"))
    said = ces("get", "jobs", code=2).stderr
    assert f"No answer from {samples.url}" in said
    assert "remedy: check that the manager runs there" in said
    assert json.loads(ces("get", "jobs", "--output=json", code=2).stdout)["error"]["type"] == "ces:unreachable"
