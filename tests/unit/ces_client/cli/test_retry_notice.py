"""A command that is kept waiting says so."""

from __future__ import annotations

import httpx
from stamina.instrumentation import RetryDetails

from ces_client.cli.retry_notice import RetryNotice
from ces_client.http import Busy


def test_a_command_that_is_kept_waiting_says_so_once(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr("ces_client.cli.retry_notice.time.monotonic", lambda: now)
    request = httpx.Request("GET", "http://manager:8080/v1/jobs")
    hook = RetryNotice()
    for outage in range(2):
        for retry, wait in enumerate((0.1, 0.2, 0.4, 0.8, 1.6), start=1):
            error = httpx.ConnectError("refused", request=request)
            hook(RetryDetails("send", (), {}, retry, wait, 0.0, error))
            now += wait
            assert (capsys.readouterr().err != "") is (retry == 5), (outage, retry)
        now += 60
    for retry in (1, 2):
        hook(RetryDetails("send", (), {}, retry, 0.1, 0.0, Busy(httpx.Response(503))))
        now += 2
    assert "cannot answer now (HTTP 503)" in capsys.readouterr().err
