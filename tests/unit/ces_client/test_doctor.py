"""What the machine can do, found by trying it."""

from __future__ import annotations

from ces_client import doctor
from ces_client.doctor import Finding, examine


def test_doctor_looks_for_the_engine_where_it_is_said_to_be(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    found = next(finding for finding in examine() if finding.what == "container engine")
    assert isinstance(found, Finding)
    assert not found.good
    assert "none.sock" in found.found


def test_doctor_says_by_what_links_would_be_encrypted(monkeypatch, tmp_path):
    def found(*, kernel: bool, program: str | None, tun: bool) -> tuple[bool, str, str]:
        monkeypatch.setattr(doctor, "_try", lambda *command: None if kernel else "Unknown device type")
        monkeypatch.setattr(doctor.shutil, "which", lambda name: program)
        monkeypatch.setattr(doctor, "TUN", tmp_path if tun else tmp_path / "none")
        finding = doctor._wireguard(True)
        return finding.good, finding.found, finding.remedy

    assert found(kernel=True, program=None, tun=False) == (True, "in the kernel", "")
    good, what, remedy = found(kernel=False, program="/usr/bin/wireguard-go", tun=True)
    assert (good, remedy) == (True, "")
    assert what.startswith("/usr/bin/wireguard-go")
    good, what, remedy = found(kernel=False, program="/usr/bin/wireguard-go", tun=False)
    assert not good
    assert "modprobe tun" in remedy
    good, what, remedy = found(kernel=False, program=None, tun=True)
    assert (good, what) == (False, "neither in the kernel nor as a program")
    assert "apt-get install wireguard-go" in remedy
