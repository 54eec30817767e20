"""Secrets on the wire: bounded, and shown by no mistake in them."""

from __future__ import annotations

import base64

import pytest
from pydantic import ValidationError

from ces_common.field_errors import plain_problem
from ces_common.messages.secrets import MAX_VALUE, SecretValue, TaskSecrets


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


@pytest.mark.parametrize("value", [b"x", b"\0\xff\n", b"x" * MAX_VALUE])
def test_any_bytes_are_a_secret(value: bytes) -> None:
    assert SecretValue.model_validate({"value": encoded(value)}).value == value
    assert TaskSecrets.model_validate_json(TaskSecrets(files={"a": value}).encode()).files == {"a": value}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "must have 1 to 65536 bytes, has 0"),
        (encoded(b"x" * (MAX_VALUE + 1)), "must have 1 to 65536 bytes, has 65537"),
        ("hush, not base64!", "must be the secret in base64"),
        (5, "must be text: the secret in base64"),
    ],
)
def test_what_is_wrong_is_said_without_the_value(value: object, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SecretValue.model_validate({"value": value})
    assert [plain_problem(error) for error in refused.value.errors()] == [said]


def test_they_are_not_shown_where_a_message_is_printed() -> None:
    shown = repr(SecretValue.model_validate({"value": encoded(b"marker")})) + repr(TaskSecrets(files={"a": b"marker"}))
    assert "marker" not in shown
