"""The context file and the environment."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ces_client import BadInput, Context, load_context, save_context
from ces_client.context import context_path


def test_the_context_file_is_for_its_owner_only(tmp_path):
    path = tmp_path / "new" / "context.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o644)
    save_context(Context("http://m", "secret"), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_context({"CES_CONTEXT": str(path)}) == Context("http://m", "secret")


def test_the_environment_comes_before_the_file_and_no_token_goes_to_another_url(tmp_path):
    path = save_context(Context("http://m", "secret", "/ca.pem"), tmp_path / "context.json")
    base = {"CES_CONTEXT": str(path)}
    assert load_context(base | {"CES_URL": "http://m/"}) == Context("http://m/", "secret", "/ca.pem")
    assert load_context(base | {"CES_URL": "https://other"}) == Context("https://other")
    assert load_context(base | {"CES_TOKEN": "t2"}) == Context("http://m", "t2", "/ca.pem")
    assert load_context(base | {"CES_URL": "https://other", "CES_TOKEN": "t2"}) == Context("https://other", "t2")


def test_no_context_and_a_broken_one(tmp_path):
    with pytest.raises(BadInput) as caught:
        load_context({"CES_CONTEXT": str(tmp_path / "none.json")})
    assert "ces up" in caught.value.problem.errors[0]["remedy"]
    for text in ("{", "[]", "{}"):
        (tmp_path / "broken.json").write_text(text)
        with pytest.raises(BadInput) as caught:
            load_context({"CES_CONTEXT": str(tmp_path / "broken.json")})
        assert "ces login" in caught.value.problem.errors[0]["remedy"]


def test_where_the_context_lies(tmp_path):
    assert context_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/ces/context.json")
    assert context_path({}) == Path.home() / ".config/ces/context.json"
