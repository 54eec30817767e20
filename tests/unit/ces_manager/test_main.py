"""What the manager makes of the queue's file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ces_common.natsauth import init_trust
from ces_common.natsauth.secret_files import new_key
from ces_common.service import BadSetup
from ces_manager.__main__ import run, secret_keys_from
from ces_manager.settings import ManagerSettings


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("weights: {priority: -1}", "weights.priority: must be 0 or more"),
        (
            "tenants: [{name: a, guaranteed: {cpu: 0.9}, quota: {cpu: 0.1}}]",
            "tenants[0].guaranteed.cpu: 0.9 contradicts",
        ),
        ("tenants: [{name: a}, {name: a}]", "tenants[1].name: a is named twice"),
    ],
)
async def test_a_wrong_file_keeps_it_from_starting_and_changes_nothing(tmp_path: Path, text: str, field: str) -> None:
    token, file, database = tmp_path / "token", tmp_path / "queue.yaml", tmp_path / "ces.db"
    token.write_text("a-token-for-tests-only")
    token.chmod(0o600)
    file.write_text(text)
    settings = ManagerSettings(
        admin_token_file=token,
        agent_signing_key_file=init_trust(tmp_path / "trust").signing_key_file("agent"),
        database_url=f"sqlite:///{database}",
        queue=file,
    )
    with pytest.raises(BadSetup) as refused:
        await run(settings, asyncio.Event())
    assert str(refused.value).startswith(f"CES_QUEUE: {file}: {field}")
    assert not database.exists()


def test_an_empty_setting_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CES_QUEUE", "CES_OIDC_ISSUER", "CES_OIDC_GRANTS", "CES_OIDC_CA", "CES_SECRETS_KEY_FILE"):
        monkeypatch.setenv(name, "")
    read = ManagerSettings(admin_token_file=tmp_path, agent_signing_key_file=tmp_path)
    assert (read.queue, read.oidc_issuer, read.oidc_grants, read.oidc_ca) == (None, None, None, None)
    assert read.secrets_key_file is None


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        (new_key(), 0o644, "can be read by others"),
        (None, 0o600, "cannot be read"),
        ("too short", 0o600, "holds less than"),
        (f"{new_key()}not-a-key-in-any-way!\n", 0o600, "key 2 is not written in base64"),
    ],
    ids=["open", "missing", "short", "no-key"],
)
def test_keys_that_others_can_read_or_that_are_none_keep_it_from_starting(
    tmp_path: Path, text: str | None, mode: int, said: str
) -> None:
    path = tmp_path / "secrets.key"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    settings = ManagerSettings(admin_token_file=path, agent_signing_key_file=path, secrets_key_file=path)
    with pytest.raises(BadSetup, match="CES_SECRETS_KEY_FILE") as refused:
        secret_keys_from(settings)
    assert said in str(refused.value)
    assert text is None or text.strip().splitlines()[-1] not in str(refused.value)


def test_a_provider_needs_to_be_said_what_its_groups_may_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CES_OIDC_ISSUER", "https://login.example")
    with pytest.raises(ValueError, match="CES_OIDC_ISSUER and CES_OIDC_GRANTS go together"):
        ManagerSettings(admin_token_file=tmp_path, agent_signing_key_file=tmp_path)
