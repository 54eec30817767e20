"""Requests: what is repeated, and what errors say."""

from __future__ import annotations

import httpx
import pytest
import stamina

from ces_client import ApiError, BadInput, Client, Unreachable
from ces_client.context import Context


def test_a_token_is_not_asked_for_twice_once_it_may_have_been_made(client, manager):
    manager.on("POST", "nodes/tokens", httpx.ReadError("reset"))
    with pytest.raises(Unreachable):
        client.nodes.create_token("n1")
    assert len(manager.requests) == 1


def test_a_request_that_never_left_is_repeated_in_any_case(client, manager, samples):
    token = {"token": "t", "node": "n1", "expires_at": samples.submitted.isoformat()}
    manager.on("POST", "nodes/tokens", httpx.ConnectError("refused"), token)
    assert client.nodes.create_token("n1").token == "t"
    assert manager.requests[-1].read() == b'{"node":"n1","ttl_s":3600}'


def test_refusals_are_not_repeated_and_carry_the_problem(client, manager, samples):
    wrong = [{"field": "tasks.0.image", "problem": "not allowed", "remedy": "use ces-worker-train"}]
    manager.on("POST", "jobs", samples.problem(422, "Invalid input", "not allowed", wrong))
    with pytest.raises(ApiError) as caught:
        client.jobs.submit({"name": "x"})
    assert (caught.value.status, caught.value.problem.errors) == (422, wrong)
    assert len(manager.requests) == 1


def test_a_busy_manager_is_left_after_some_attempts(client, manager, samples):
    manager.on("GET", f"jobs/{samples.id}", samples.problem(503, "Unavailable", "the database does not answer"))
    with pytest.raises(ApiError, match="the database does not answer"):
        client.jobs.get(samples.id)
    assert len(manager.requests) == 5


def test_an_unauthenticated_answer_says_how_to_log_in(client, manager, samples):
    manager.on("GET", "topology", samples.problem(401, "Not authenticated"))
    with pytest.raises(ApiError) as caught:
        client.topology.get()
    assert "ces login" in caught.value.problem.errors[0]["remedy"]


def test_no_answer_names_the_url_and_the_remedy(client, manager, samples):
    manager.on("GET", "topology", httpx.ConnectError("Connection refused"))
    with pytest.raises(Unreachable) as caught:
        client.topology.get()
    assert caught.value.url == samples.url
    assert "ces up" in caught.value.remedy
    assert "Connection refused" in caught.value.problem.detail


def test_an_unknown_certificate_asks_for_its_authority(client, manager):
    manager.on("GET", "topology", httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"))
    with pytest.raises(Unreachable) as caught:
        client.topology.get()
    assert "--ca" in caught.value.remedy
    assert len(manager.requests) == 1, "no time mends it"


def test_patience_ends(manager, samples):
    """Without the cap on attempts that the other tests have."""
    for path in ("topology", "jobs/j1/events"):
        manager.on("GET", path, httpx.ConnectError("Connection refused"))
    transport = httpx.MockTransport(manager)
    with stamina.set_testing(False), Client(samples.url, transport=transport, patience_s=0.05, insecure=True) as client:
        for ask in (client.topology.get, lambda: list(client.jobs.events_so_far("j1"))):
            with pytest.raises(Unreachable):
                ask()


@pytest.mark.parametrize("url", ["manager:8080", "ftp://manager", "http://", "http://host:99999", "http://[::1", ""])
def test_what_is_no_url_is_refused_at_once(url):
    with pytest.raises(BadInput) as caught:
        Client(url, "secret")
    assert caught.value.problem.errors[0]["field"] == "url"


@pytest.mark.parametrize("url", ["http://192.0.2.1:8080", "http://edge-master", "http://[2001:db8::1]:80"])
def test_plain_http_to_another_machine_must_be_asked_for(url, monkeypatch):
    with pytest.raises(BadInput) as caught:
        Client(url, "secret")
    (said,) = caught.value.problem.errors
    assert (said["field"], said["problem"]) == ("url", "whoever is on the way would read the token")
    assert "insecure=True" in said["remedy"]
    for way in (lambda: Client(url, "secret", insecure=True), lambda: Client.from_context(Context(url, "secret"))):
        way().close()
    monkeypatch.setenv("CES_INSECURE", "true")
    Client(url, "secret").close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://localhost:1", "http://[::1]:8080"])
def test_on_its_own_machine_it_need_not_be(url):
    Client(url, "secret").close()


def test_a_token_that_no_header_can_carry_is_refused():
    with pytest.raises(BadInput) as caught:
        Client("https://manager", "sec\nret")
    assert caught.value.problem.errors[0]["field"] == "token"


def test_a_ca_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(BadInput) as caught:
        Client("https://manager", "secret", verify=str(tmp_path / "none.pem"))
    assert caught.value.problem.errors[0]["field"] == "ca"
