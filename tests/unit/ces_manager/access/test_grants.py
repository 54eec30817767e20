"""What groups of an OpenID provider may do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ces_common.queuefile import QueueFile
from ces_common.roles import Role
from ces_common.service import BadSetup
from ces_common.setup_files import read_setup_file
from ces_manager.access.grants import GrantsFile, check_tenants, identity_of
from ces_manager.errors import Forbidden

FILE = GrantsFile.model_validate(
    {
        "name_claim": "email",
        "grants": [
            {"group": "ops", "role": "operator"},
            {"group": "vision", "role": "submitter", "tenants": ["vision"], "max_priority": 60},
            {"group": "all", "role": "viewer", "tenants": ["vision", "text"]},
        ],
    }
)


def claims(**said: Any) -> dict[str, Any]:
    return {"email": "anna@example.org", "exp": 2_000_000_000, **said}


@pytest.mark.parametrize(
    ("groups", "role", "tenants", "priority"),
    [
        (["all", "vision"], Role.SUBMITTER, ["vision"], 60),
        (["all", "vision", "ops"], Role.OPERATOR, None, 100),
        ("all", Role.VIEWER, ["vision", "text"], 100),
    ],
)
def test_the_first_grant_of_a_group_of_theirs_counts(
    groups: Any, role: Role, tenants: list[str] | None, priority: int
) -> None:
    found = identity_of(claims(groups=groups), FILE)
    assert (found.name, found.role, found.tenants) == ("oidc:anna@example.org", role, tenants)
    assert found.max_priority == priority
    assert found.expires_at == datetime.fromtimestamp(2_000_000_000, UTC)


@pytest.mark.parametrize("groups", [None, [], ["others"], [1, None], {"ops": True}, 7])
def test_who_is_in_none_of_them_is_refused(groups: Any) -> None:
    with pytest.raises(Forbidden, match="in no group that has a role here"):
        identity_of(claims(groups=groups), FILE)


@pytest.mark.parametrize("email", [None, "", 7, "x" * 121, "a\nb", ["a"]])
def test_a_name_that_is_none_is_refused(email: Any) -> None:
    with pytest.raises(Forbidden, match="needs the claim 'email'"):
        identity_of(claims(email=email, groups="ops"), FILE)


def test_a_tenant_that_the_queue_does_not_know_is_named() -> None:
    check_tenants(FILE, QueueFile())
    queue = QueueFile.model_validate({"tenants": [{"name": "vision"}]})
    with pytest.raises(BadSetup, match=r"grants\[2\].tenants: no tenant is called 'text': name one of vision"):
        check_tenants(FILE, queue)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grants: []", "grants: "),
        ("grants: [{group: a, role: king}]", "grants[0].role: "),
        ("grants: [{group: a, role: viewer}]", "say whose jobs a viewer may see"),
        ("grants: [{group: a, role: admin, tenants: [b]}]", "leave them out"),
        ("grants: [{group: '', role: admin}]", "grants[0].group: "),
        ("names: b", "names: "),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Any, text: str, said: str) -> None:
    (tmp_path / "grants.yaml").write_text(text)
    with pytest.raises(BadSetup) as caught:
        read_setup_file(tmp_path / "grants.yaml", GrantsFile, "CES_OIDC_GRANTS")
    assert str(caught.value).startswith(f"CES_OIDC_GRANTS: {tmp_path / 'grants.yaml'}: ")
    assert said in str(caught.value)
