"""Logs."""

import json
import sys

import pytest
import structlog

from ces_common import logs


def test_logs_are_json_lines_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    root = logging.getLogger()
    before = (root.handlers[:], root.level, structlog.get_config())
    try:
        logs.configure_logging("tester", "info")
        structlog.get_logger("x").info("hello", join_token="sesame", nats_seed="SU", node="n1")
        structlog.get_logger("x").debug("unheard")
        logging.getLogger("elsewhere").warning("from the standard library")
        sys.stderr.flush()
    finally:
        root.handlers[:], root.level = before[0], before[1]
        structlog.reset_defaults()
        structlog.configure(**before[2])
        structlog.contextvars.clear_contextvars()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["hello", "from the standard library"]
    assert lines[0]["node"] == "n1"
    assert (lines[0]["join_token"], lines[0]["nats_seed"]) == ("***", "***")
    assert {line["service"] for line in lines} == {"tester"}
