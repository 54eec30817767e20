"""A real OpenID provider, Canaille, on loopback: people sign in there with a browser, and get tokens."""

from __future__ import annotations

import os
import re
import secrets
import threading
import wsgiref.simple_server
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

AUDIENCE, SECRET, PASSWORD = "ces", "client-secret", "correct horse battery staple"
BACK = "http://localhost:1/back"  # nobody is there: what is sent there is read off the address
ACL = {"DEFAULT": {"PERMISSIONS": ["use_oidc"]}}
_CSRF = re.compile(r'name="csrf_token" value="([^"]+)"')


@dataclass
class OpenIdProvider:
    url: str
    app: Any

    def token(self, user: str) -> str:
        """The ID token that somebody gets who signs in, for whoever is AUDIENCE."""
        asked = {"response_type": "code", "client_id": AUDIENCE, "redirect_uri": BACK, "scope": "openid groups"}
        forms = iter([{"login": user}, {"password": PASSWORD}, {"answer": "accept"}])
        with httpx.Client(base_url=self.url, trust_env=False) as browser:
            answer = browser.get("/oauth/authorize", params=asked | {"nonce": "n", "state": "s"})
            while not (where := answer.headers.get("location", "")).startswith(BACK):
                if where:
                    answer = browser.get(where)
                else:
                    hidden = {"csrf_token": found[1]} if (found := _CSRF.search(answer.text)) else {}
                    answer = browser.post(answer.request.url, data={**hidden, **next(forms)})
            [code] = parse_qs(urlsplit(where).query)["code"]
            grant = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK}
            got = browser.post("/oauth/token", data=grant, auth=(AUDIENCE, SECRET)).raise_for_status().json()
        return str(got["id_token"])

    def change_keys(self) -> None:
        """From now on, sign with another key, and tell of no other."""
        self.app.config["CANAILLE_OIDC"]["ACTIVE_JWKS"] = [_key()]


class _Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_: Any) -> None: ...


def _key() -> dict[str, Any]:
    from joserfc.jwk import RSAKey

    key = RSAKey.generate_key(2048, auto_kid=True)
    return dict(key.as_dict(private=True))


@contextmanager
def openid_provider(groups: Mapping[str, Sequence[str]]) -> Iterator[OpenIdProvider]:
    """``groups``: who is in each. All have one password."""
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # loopback has no TLS
    from canaille import create_app
    from canaille.app import models
    from canaille.backends import Backend

    server = wsgiref.simple_server.make_server("127.0.0.1", 0, None, handler_class=_Quiet)
    url = f"http://localhost:{server.server_port}"
    settings = {
        "SECRET_KEY": secrets.token_hex(),
        "PREFERRED_URL_SCHEME": "http",
        "SERVER_NAME": urlsplit(url).netloc,
        "CANAILLE": {"DATABASE": "memory", "JAVASCRIPT": False, "ACL": ACL, "LOGGING": {"version": 1}},
        "CANAILLE_OIDC": {"ACTIVE_JWKS": [_key()]},
    }
    app = create_app(config=settings, env_file=None)
    server.set_app(app)
    with app.app_context():
        store = Backend.instance
        people = {}
        for name in sorted({name for members in groups.values() for name in members}):
            mail = f"{name}@example.org"
            people[name] = models.User(
                user_name=name, formatted_name=name, family_name=name, emails=[mail], password=PASSWORD
            )
            store.save(people[name])
        for group, members in groups.items():
            store.save(models.Group(display_name=group, members=[people[name] for name in members]))
        client = models.Client(
            client_id=AUDIENCE, client_secret=SECRET, client_name="CES", client_uri="http://localhost:1",
            redirect_uris=[BACK], grant_types=["authorization_code"], response_types=["code"],
            scope=["openid", "groups"], token_endpoint_auth_method="client_secret_basic",
            client_id_issued_at=datetime.now(UTC),
        )  # fmt: skip
        store.save(client)
        client.audience = [client]
        store.save(client)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield OpenIdProvider(url, app)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
