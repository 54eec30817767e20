"""What the machine can do, found by trying it."""

from __future__ import annotations

from ces_client.doctor import Finding, examine


def test_doctor_looks_for_the_engine_where_it_is_said_to_be(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    found = next(finding for finding in examine() if finding.what == "container engine")
    assert isinstance(found, Finding)
    assert not found.good
    assert "none.sock" in found.found
