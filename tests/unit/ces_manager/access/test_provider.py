"""What an OpenID provider may answer, and what becomes of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from ces_manager.access import provider as module
from ces_manager.access.grants import GrantsFile
from ces_manager.access.provider import AGAIN_S, DISCOVERY, KEYS_S, OLDEST_KEYS_S, Provider
from ces_manager.errors import Forbidden, Unavailable
from ces_manager.settings import provider_url

GRANTS = GrantsFile.model_validate({"grants": [{"group": "g", "role": "viewer", "tenants": ["red"]}]})
KEY = ECKey.generate_key("P-256", auto_kid=True)
KEYS = "/keys"


class Pages:
    """What is answered under each address; nothing under any other."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.now = 0.0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:
                self.asked.append(handler.path)
                body = self.bodies.get(handler.path)
                handler.send_response(404 if body is None else 200)
                handler.end_headers()
                handler.wfile.write(body or b"")

            def log_message(handler, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.tells(KEY.as_dict(private=False))

    def tells(self, *keys: Any, **changes: Any) -> None:
        self.bodies[DISCOVERY] = json.dumps({"issuer": self.url, "jwks_uri": self.url + KEYS} | changes).encode()
        self.bodies[KEYS] = json.dumps({"keys": keys}).encode()

    def token(self, **changes: Any) -> str:
        claims = {"iss": self.url, "aud": "ces", "exp": 4_000_000_000, "sub": "anna", "groups": ["g"]}
        return jwt.encode({"alg": "ES256", "kid": KEY.kid}, claims | changes, KEY)

    def provider(self) -> Provider:
        return Provider(self.url, "ces", GRANTS, lambda: self.now)


@pytest.fixture
def pages() -> Iterator[Pages]:
    made = Pages()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


async def test_its_keys_are_asked_for_now_and_then(pages: Pages) -> None:
    provider = pages.provider()
    for _ in range(3):
        assert (await provider.identity(pages.token())).name == "oidc:anna"
    assert pages.asked == [DISCOVERY, KEYS]
    pages.now = KEYS_S
    await provider.identity(pages.token())
    assert len(pages.asked) == 4


async def test_keys_that_are_not_understood_are_passed_over(pages: Pages) -> None:
    odd = [{"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"}, {"kty": "new"}, 7, None, {}]
    pages.tells(*odd, KEY.as_dict(private=False))
    assert (await pages.provider().identity(pages.token())).name == "oidc:anna"


@pytest.mark.parametrize(
    ("page", "body"),
    [
        (DISCOVERY, b"no json"),
        (DISCOVERY, b"[" * 100_000),
        (DISCOVERY, b"[]"),
        (DISCOVERY, b'{"issuer": "https://another.example"}'),
        (KEYS, b'{"keys": 7}'),
        (KEYS, b'{"keys": []}'),
        (KEYS, b" " * (module.LARGEST_ANSWER + 1)),
    ],
)
async def test_answers_that_are_none_are_asked_for_again_later(pages: Pages, page: str, body: bytes) -> None:
    good, pages.bodies[page] = pages.bodies[page], body
    provider = pages.provider()
    with pytest.raises(Unavailable, match="does not answer as it should"):
        await provider.identity(pages.token())
    asked = len(pages.asked)
    with pytest.raises(Unavailable, match="did not answer lately"):
        await provider.identity(pages.token())
    assert len(pages.asked) == asked
    pages.now, pages.bodies[page] = AGAIN_S, good
    assert (await provider.identity(pages.token())).name == "oidc:anna"


@pytest.mark.parametrize(
    "uri", [7, None, "http://192.0.2.1/keys", "https://a:99999/", "https://a\n/", "file:///etc/passwd"]
)
async def test_keys_are_asked_for_only_where_a_provider_can_be(pages: Pages, uri: Any) -> None:
    pages.tells(jwks_uri=uri)
    with pytest.raises(Unavailable):
        await pages.provider().identity(pages.token())
    assert pages.asked == [DISCOVERY]


async def test_known_keys_are_good_for_a_while_where_it_is_away(pages: Pages) -> None:
    provider = pages.provider()
    await provider.identity(pages.token())
    pages.bodies.clear()
    pages.now = OLDEST_KEYS_S - 1
    assert (await provider.identity(pages.token())).name == "oidc:anna"
    pages.now = OLDEST_KEYS_S + AGAIN_S
    with pytest.raises(Unavailable):
        await provider.identity(pages.token())


@pytest.mark.parametrize("claim", [{"exp": 10**30}, {"exp": "soon"}, {"exp": None}, {"nbf": 4_000_000_000}, {"aud": 7}])
async def test_odd_claims_are_refused(pages: Pages, claim: dict[str, Any]) -> None:
    with pytest.raises(Forbidden):
        await pages.provider().identity(pages.token(**claim))


@pytest.mark.parametrize(
    "url",
    ["http://a.example", "ftp://a", "https://", "https://a:99999", "https://me:secret@a", "https://a/?q", "a", ""],
)
def test_a_provider_is_where_it_can_be_trusted(url: str) -> None:
    with pytest.raises(ValueError) as refused:
        provider_url(url)
    assert "secret" not in str(refused.value)
    assert provider_url("https://login.example/realms/a") == "https://login.example/realms/a"
