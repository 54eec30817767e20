"""People who sign in elsewhere: tokens of a real OpenID provider, and what their groups may do."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import new_database
from joserfc import jwt
from joserfc.jwk import RSAKey
from openid_provider import AUDIENCE, OpenIdProvider, openid_provider
from rest_api import JOB, Api, running_api

from ces_manager.access.grants import GrantsFile
from ces_manager.access.provider import AGAIN_S, Provider

GRANTS = GrantsFile.model_validate(
    {
        "grants": [
            {"group": "ces-admins", "role": "admin"},
            {"group": "vision", "role": "submitter", "tenants": ["red"], "max_priority": 60},
        ]
    }
)


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def issuer() -> Iterator[OpenIdProvider]:
    with openid_provider({"vision": ["anna"], "ces-admins": ["bert"], "others": ["carl"]}) as made:
        yield made


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
async def api(tmp_path: Path, issuer: OpenIdProvider, time: Time) -> AsyncIterator[Api]:
    provider = Provider(issuer.url, AUDIENCE, GRANTS, time)
    async with running_api(tmp_path, new_database("sqlite", tmp_path), provider=provider) as made:
        yield made


async def ask(api: Api, token: str, path: str = "/v1/whoami", body: Any = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=api.http.base_url, headers=headers, timeout=20) as http:
        return await (http.get(path) if body is None else http.post(path, json=body))


def claims_of(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims


async def test_who_signs_in_has_the_role_of_their_group(api: Api, issuer: OpenIdProvider) -> None:
    anna = (await ask(api, issuer.token("anna"))).json()
    assert (anna["name"], anna["role"], anna["tenants"]) == ("oidc:anna", "submitter", ["red"])
    assert anna["expires_at"] is not None
    assert (await ask(api, issuer.token("bert"))).json()["role"] == "admin"
    job = (await ask(api, issuer.token("anna"), "/v1/jobs", JOB)).json()
    assert (job["tenant"], job["priority"]) == ("red", 50)
    events = [event async for event in _events(api, job["id"])]
    assert events[0]["actor"] == "oidc:anna"
    refused = await ask(api, issuer.token("anna"), "/v1/nodes/tokens", {})
    assert (refused.status_code, "needs the role operator" in refused.text) == (403, True)


async def _events(api: Api, job: str) -> AsyncIterator[dict[str, Any]]:
    async with api.http.stream("GET", f"/v1/jobs/{job}/events") as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                yield json.loads(line[6:])
                return


async def test_who_is_in_no_group_of_ours_has_no_role(api: Api, issuer: OpenIdProvider) -> None:
    answer = await ask(api, issuer.token("carl"))
    assert (answer.status_code, "carl is in no group that has a role here" in answer.text) == (403, True)


async def test_tokens_of_others_for_others_or_of_yesterday_admit_nobody(api: Api, issuer: OpenIdProvider) -> None:
    good = claims_of(issuer.token("bert"))
    [key] = issuer.app.config["CANAILLE_OIDC"]["ACTIVE_JWKS"]
    ours, other = RSAKey.import_key(key), RSAKey.generate_key(2048)

    def signed(key: RSAKey, **changes: Any) -> str:
        return jwt.encode({"alg": "RS256", "kid": ours.kid}, good | changes, key)

    assert (await ask(api, signed(ours))).status_code == 200
    # the public key, which everybody knows, taken for a shared secret
    head = f"{_part({'alg': 'HS256', 'kid': ours.kid})}.{_part(good)}"
    confused = f"{head}.{_base64(hmac.digest(ours.as_pem(private=False), head.encode(), 'sha256'))}"
    for token, said in [
        (signed(other), "has not signed this token"),
        (confused, "has not signed this token"),
        (signed(ours)[:-9] + "AAAAAAAAA", "has not signed this token"),
        (f"{_part({'alg': 'none'})}.{_part(good)}.AA", "has not signed this token"),
        (signed(ours, aud="another"), "aud"),
        (signed(ours, iss="http://localhost:1"), "iss"),
        (signed(ours, exp=good["iat"] - 3600), "expired"),
        (signed(ours, sub=""), "does not say who you are"),
        (signed(ours, sub="a\nb"), "does not say who you are"),
        (signed(ours, exp=1e308), "ends at no time that there is"),
        (f"{_part({'alg': 'ES256', 'crit': 5})}.e30.AA", "has not signed this token"),
        ("a.b.c", "has not signed this token"),
        ("a.b", "not known here"),
    ]:
        answer = await ask(api, token)
        assert (answer.status_code, said in answer.json()["detail"]) == (401, True), (said, answer.text)


def _part(of: dict[str, Any]) -> str:
    return _base64(json.dumps(of).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


async def test_new_keys_of_the_provider_are_asked_for_and_old_ones_forgotten(
    api: Api, issuer: OpenIdProvider, time: Time
) -> None:
    before, unsent = issuer.token("anna"), issuer.token("bert")
    assert (await ask(api, before)).status_code == 200
    issuer.change_keys()
    after = issuer.token("bert")
    assert (await ask(api, after)).status_code == 401, "it was asked a moment ago"
    time.now += AGAIN_S
    assert (await ask(api, after)).status_code == 200
    fresh = issuer.token("anna")
    assert (await ask(api, fresh)).status_code == 200
    assert (await ask(api, unsent)).status_code == 401, "its key is gone"


async def test_a_provider_that_does_not_answer_is_said_to_be_the_cause(tmp_path: Path, issuer: OpenIdProvider) -> None:
    away = Provider("http://localhost:1", AUDIENCE, GRANTS)
    token = issuer.token("anna")
    async with running_api(tmp_path, new_database("sqlite", tmp_path), provider=away) as api:
        for said in ("does not answer as it should", "did not answer lately"):
            answer = await ask(api, token)
            assert (answer.status_code, said in answer.text) == (503, True)
        assert (await api.http.get("/v1/whoami")).status_code == 200, "who has another token does not mind"
