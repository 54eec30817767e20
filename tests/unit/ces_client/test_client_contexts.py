"""Several clusters: which one commands talk to, how another is chosen, and what a shell is told."""

from __future__ import annotations

import json

import pytest
from ces_command import ces

from ces_client import BadInput, Context, load_context, save_context
from ces_client.cli import session
from ces_client.cli.plugins import cluster_first
from ces_client.context import context_path, forget_token, read_contexts, use_context

LOCAL, LAB = Context("http://127.0.0.1:1", "t1", state="/s/local"), Context("http://127.0.0.1:2", "t'2")


@pytest.fixture(autouse=True)
def _saved():
    save_context(LAB, name="lab")
    save_context(LOCAL, name="local")
    yield
    session.name_cluster(None)


def test_the_last_one_saved_is_current_and_the_others_stay():
    assert load_context() == LOCAL
    assert load_context(cluster="lab") == LAB
    assert use_context("lab") == LAB
    assert load_context() == LAB


def test_an_unknown_name_is_answered_with_similar_ones():
    with pytest.raises(BadInput) as caught:
        load_context(cluster="locl")
    assert "known are local" in caught.value.problem.errors[0]["remedy"]


def test_a_url_brings_the_token_that_is_known_for_it():
    known = {"CES_CONTEXT": str(context_path()), "CES_URL": LAB.url}
    assert load_context(known).token == "t'2"


def test_after_the_current_one_is_gone_no_other_is_taken_unasked():
    forget_token("t1")
    assert read_contexts().known == {"lab": LAB}
    with pytest.raises(BadInput) as caught:
        load_context()
    assert "ces use NAME" in caught.value.problem.errors[0]["remedy"]
    assert "lab" in caught.value.problem.errors[0]["remedy"]
    forget_token("t'2")
    assert not context_path().exists()


def test_forgetting_another_one_leaves_the_current_one():
    forget_token("t'2")
    assert load_context() == LOCAL


def test_a_file_with_a_single_context_is_still_read():
    context_path().write_text(json.dumps({"url": "http://edge:8080/", "token": "old"}))
    assert load_context() == Context("http://edge:8080/", "old")
    save_context(LAB, name="lab")
    assert set(read_contexts().known) == {"edge:8080", "lab"}


def test_the_command_lists_them_and_switches():
    shown = json.loads(ces("clusters", "-o", "json").stdout)["clusters"]
    assert [(each["name"], each["current"], each["answers"]) for each in shown] == [
        ("lab", False, "no"),
        ("local", True, "no"),
    ]
    assert shown[1]["state"] == "/s/local"
    assert "* local" in " ".join(ces("clusters").stdout.split())
    assert "talks to lab now" in ces("use", "lab").stdout
    assert load_context() == LAB
    assert "known are lab" in ces("use", "la", code=2).stderr


def test_env_is_for_a_shell():
    assert ces("env").stdout == "export CES_URL=http://127.0.0.1:1 CES_TOKEN=t1\n"
    assert ces("env", "--cluster", "lab").stdout == """export CES_URL=http://127.0.0.1:2 CES_TOKEN='t'"'"'2'\n"""
    assert json.loads(ces("--cluster", "lab", "env", "-o", "json").stdout) == {"CES_URL": LAB.url, "CES_TOKEN": "t'2"}
    assert ces("env").stdout.startswith("export CES_URL=http://127.0.0.1:1 "), "the option is for one command"
    save_context(Context("https://127.0.0.1:3", "t3", "/s/authority.pem"), name="safe")
    assert ces("env").stdout == "export CES_URL=https://127.0.0.1:3 CES_TOKEN=t3 CES_AUTHORITY=/s/authority.pem\n"


def test_the_option_comes_before_the_environment(monkeypatch):
    monkeypatch.setenv("CES_URL", "http://other")
    monkeypatch.setenv("CES_TOKEN", "other")
    assert "http://127.0.0.1:2" in ces("env", "--cluster=lab").stdout
    assert "No cluster is known as nope" in ces("get", "jobs", "--cluster", "nope", code=2).stderr


def test_the_option_may_stand_anywhere_before_the_double_dash():
    assert cluster_first(["get", "nodes", "--cluster", "a", "-w"]) == ["--cluster", "a", "get", "nodes", "-w"]
    assert cluster_first(["get", "--cluster=a"]) == ["--cluster=a", "get"]
    assert cluster_first(["run", "--", "--cluster", "a"]) == ["run", "--", "--cluster", "a"]
    assert cluster_first(["get", "--cluster"]) == ["--cluster", "get"]
