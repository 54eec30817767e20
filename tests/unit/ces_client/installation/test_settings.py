"""The agent's settings on a device."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_client.errors import BadInput
from ces_client.installation.settings import (
    endpoint_of,
    env_file,
    manager_url,
    nats_endpoint,
    read_assignments,
    settings_for,
)


def test_settings_are_named_with_or_without_their_beginning():
    assert read_assignments(["network=none", "CES_NODE_LABELS=site=roof"]) == {
        "CES_NETWORK": "none",
        "CES_NODE_LABELS": "site=roof",
    }


@pytest.mark.parametrize(
    "text",
    [
        "network",
        "=none",
        "a b=c",
        "node=x",
        "join_token=x",
        "CES_JOIN_TOKEN_FILE=/x",
        "state_dir=/x",
        "hide=a\nCES_X=b",
    ],
)
def test_what_cannot_be_set(text):
    with pytest.raises(BadInput) as refused:
        read_assignments([text])
    assert refused.value.problem.errors[0]["field"] == "--set"


def test_defaults_and_what_is_given():
    settings = settings_for("roof1", "https://m:8080", "192.0.2.11", {"CES_NETWORK": "none"})
    assert settings["CES_NETWORK"] == "none"
    assert settings["CES_RUNTIME"] == "process"
    assert settings["CES_HOST_ADDRESS"] == "192.0.2.11"
    assert "CES_HOST_ADDRESS" not in settings_for("roof1", "https://m:8080", None, {})


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.sampled_from(" \"'\\`$#;="), max_size=40)
)
def test_values_stay_whole_as_systemd_and_shells_read_them(value):
    """In double quotes both take a backslash before these four characters away, and no other."""
    *_, line = env_file({"CES_X": value}).splitlines()
    assert shlex.split(line.replace("\\`", "`").replace("\\$", "$")) == [f"CES_X={value}"]


def test_where_devices_reach_the_manager():
    assert manager_url(None, "https://m:8080/") == "https://m:8080"
    assert manager_url("https://127.0.0.1:1", "https://m:8080") == "https://127.0.0.1:1"
    for named, known in ((None, "https://127.0.0.1:8080"), (None, "http://localhost:1"), ("m:8080", "https://m")):
        with pytest.raises(BadInput):
            manager_url(named, known)
    assert endpoint_of("https://m") == ("m", 443)


def test_where_devices_reach_nats():
    assert nats_endpoint(None, "https://m:8080") == ("m", 4222)
    assert nats_endpoint("n:1", "https://m:8080") == ("n", 1)
    assert nats_endpoint("[2001:db8::1]", "https://m:8080") == ("2001:db8::1", 4222)
    for wrong in ("", "n:port", "n/x"):
        with pytest.raises(BadInput):
            nats_endpoint(wrong, "https://m:8080")
