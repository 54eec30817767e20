"""What `ces doctor` says of a cluster's certificates, by what its manager tells."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from ces_command import ces

from ces_client import certificates
from ces_client.certificates import examine_certificates
from ces_client.cli import machine
from ces_client.context import Context
from ces_client.doctor import Finding

NOW = datetime(2030, 6, 1, tzinfo=UTC)
URL = "https://manager:8080"


def told(*ends: tuple[str, str, float]) -> str:
    lines = [
        "# HELP ces_certificate_end_timestamp_seconds the end",
        "# TYPE ces_certificate_end_timestamp_seconds gauge",
    ]
    for name, by, days in ends:
        at = (NOW + timedelta(days=days)).timestamp()
        lines.append(f'ces_certificate_end_timestamp_seconds{{certificate="{name}",replaced_by="{by}"}} {at}')
    return "\n".join([*lines, "ces_heartbeats_total 3.0", ""])


def examine(answer: str | Exception | httpx.Response, url: str = URL) -> Finding | None:
    def respond(request: httpx.Request) -> httpx.Response:
        assert str(request.url) == f"{URL}/metrics"
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, text=answer)

    return examine_certificates(Context(url, "secret"), lambda: NOW, httpx.MockTransport(respond))


@pytest.mark.parametrize(
    ("name", "by", "days", "soon"),
    [
        ("api", "operator", 30, None),
        ("api", "operator", 29.5, "api ends 2030-06-30, in 29 days"),
        ("nats", "operator", 0.5, "nats ends 2030-06-01, in 0 days"),
        ("nats", "operator", -1, "nats has ended 2030-05-31"),
        ("api", "manager", 1, None),
        ("authority", "operator", 61, None),
        ("authority", "operator", 59, "authority ends 2030-07-30, in 59 days"),
    ],
)
def test_what_ends_soon_and_is_not_replaced_by_itself_is_named(
    name: str, by: str, days: float, soon: str | None
) -> None:
    found = examine(told((name, by, days), ("authority", "operator", 900)))
    assert found is not None
    assert found.good == (soon is None)
    assert found.found.endswith(soon if soon else "none ends soon that is not replaced by itself")
    assert bool(found.remedy) == (soon is not None)


def test_the_first_to_end_comes_first() -> None:
    found = examine(told(("api", "operator", 20), ("nats", "operator", 10)))
    assert found is not None
    assert found.found.index("nats") < found.found.index("api")


@pytest.mark.parametrize(
    ("answer", "said", "remedy"),
    [
        (httpx.ConnectError("[Errno 111] Connection refused"), "Connection refused", False),
        (
            httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired"),
            "certificate has expired",
            True,
        ),
        (httpx.Response(404, text="nothing"), "not seen", False),
        ("ces_heartbeats_total 3.0\n", "does not tell when they end", True),
        ("<html>not what was asked for", "not seen", False),
    ],
)
def test_what_cannot_be_seen_is_not_good(answer: str | Exception | httpx.Response, said: str, remedy: bool) -> None:
    found = examine(answer)
    assert found is not None
    assert (found.good, bool(found.remedy)) == (False, remedy)
    assert said in found.found


def test_who_is_no_operator_is_not_told_and_need_not_be() -> None:
    refused = {"type": "about:blank", "title": "Forbidden", "status": 403, "detail": "metrics need the role operator"}
    headers = {"content-type": "application/problem+json"}
    assert examine(httpx.Response(403, json=refused, headers=headers)) is None
    found = examine(httpx.Response(401, json=refused | {"status": 401}, headers=headers))
    assert found is not None
    assert not found.good


def test_a_manager_without_tls_is_not_asked() -> None:
    assert examine(AssertionError("asked"), "http://127.0.0.1:8080") is None


def test_doctor_asks_the_cluster_that_is_logged_in_to(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look(context: Context) -> Finding:
        asked.append(context.url)
        return Finding(certificates.WHAT, False, "api ends soon", certificates.REMEDY)

    monkeypatch.setattr(machine, "examine_certificates", look)
    monkeypatch.setattr(machine, "examine", list)
    assert json.loads(ces("doctor", "-o", "json").stdout)["findings"] == []
    monkeypatch.setenv("CES_URL", URL)
    monkeypatch.setenv("CES_TOKEN", "secret")
    said = " ".join(ces("doctor").stdout.split())
    assert asked == [URL]
    assert "api ends soon" in said
    assert certificates.REMEDY in said
