"""Which role includes which."""

from __future__ import annotations

from ces_common.roles import Role


def test_each_role_includes_those_before_it_and_an_auditor_none() -> None:
    included = {role: [other for other in Role if role.includes(other)] for role in Role}
    assert included == {
        Role.VIEWER: [Role.VIEWER],
        Role.SUBMITTER: [Role.VIEWER, Role.SUBMITTER],
        Role.AUDITOR: [Role.AUDITOR],
        Role.OPERATOR: [Role.VIEWER, Role.SUBMITTER, Role.AUDITOR, Role.OPERATOR],
        Role.ADMIN: list(Role),
    }


def test_viewers_and_submitters_are_limited_to_tenants() -> None:
    assert [role for role in Role if role.has_tenants] == [Role.VIEWER, Role.SUBMITTER]
