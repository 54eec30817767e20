"""``ces secret``."""

from __future__ import annotations

import base64
import json

import pytest
from ces_command import ces

from ces_common.messages.secrets import MAX_VALUE

VIEW = {"name": "hub", "tenant": "red", "updated_at": "2026-01-01T09:00:00Z", "updated_by": "ci"}


def test_a_secret_is_read_from_a_file_or_standard_input_byte_for_byte(connected, tmp_path):
    connected.on("PUT", "secrets/hub", VIEW)
    file = tmp_path / "token"
    file.write_bytes(b"\0marker\n")
    shown = ces("secret", "create", "hub", "--from-file", str(file), "--tenant", "red")
    assert shown.stdout == "secret hub of tenant red is stored\n"
    ces("secret", "create", "hub", input="marker\n")
    first, second = connected.sent("PUT", "secrets/hub")
    assert json.loads(first.content) == {"value": base64.b64encode(b"\0marker\n").decode()}
    assert first.url.params["tenant"] == "red"
    assert json.loads(second.content) == {"value": base64.b64encode(b"marker\n").decode()}
    assert "tenant" not in second.url.params
    assert "marker" not in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("stdin", "said"), [("", "standard input is empty"), ("x" * (MAX_VALUE + 1), "has more than 65536 bytes")]
)
def test_what_cannot_be_a_secret_is_refused_before_it_is_sent(connected, stdin, said):
    assert said in ces("secret", "create", "hub", input=stdin, code=2).stderr
    assert not connected.requests


def test_a_file_that_is_not_there_is_named(connected, tmp_path):
    shown = ces("secret", "create", "hub", "--from-file", str(tmp_path / "none"), code=2)
    assert "No such file" in shown.stderr


def test_secrets_are_listed_without_their_values_and_removed(connected):
    connected.on("GET", "secrets", [VIEW])
    shown = ces("secret", "list").stdout
    assert "hub" in shown
    assert "ci" in shown
    assert json.loads(ces("secret", "list", "-o", "json").stdout) == [VIEW]
    connected.on("DELETE", "secrets/hub", VIEW)
    assert ces("secret", "remove", "hub", "--tenant", "red").stdout == "secret hub of tenant red is removed\n"
    [sent] = connected.sent("DELETE", "secrets/hub")
    assert sent.url.params["tenant"] == "red"
    connected.on("GET", "secrets", [])
    assert ces("secret", "list").stdout == "no secrets\n"
