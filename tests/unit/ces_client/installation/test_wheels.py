"""Which wheels fit a device, and how they are kept."""

from __future__ import annotations

import pytest

from ces_client.installation import wheels
from ces_client.installation.wheels import NoWheels, Platform, agent_files, checkout, stanzas

BOOKWORM = Platform("x86_64", (3, 11), (2, 36))


def test_tags_reach_from_the_devices_glibc_down():
    tags = BOOKWORM.tags()
    assert tags[0] == "manylinux_2_36_x86_64"
    assert {"manylinux_2_5_x86_64", "manylinux2014_x86_64", "linux_x86_64"} < set(tags)
    small = Platform("aarch64", (3, 13), (2, 41)).tags()
    assert "manylinux_2_17_aarch64" in small
    assert "manylinux_2_16_aarch64" not in small
    assert not any("x86" in tag for tag in small)


def test_the_locks_can_be_read():
    source = checkout()
    assert "nkeys" in stanzas((source / wheels.LOCK).read_text())
    pip = stanzas((source / wheels.PIP_LOCK).read_text())["pip"]
    assert pip.startswith("pip==")
    assert "--hash=sha256:" in pip


@pytest.fixture
def pip_calls(monkeypatch):
    """pip makes files, and nothing is fetched."""
    calls = []

    def pip(*words):
        calls.append(words)
        from pathlib import Path

        if words[0] == "download":
            folder = Path(words[words.index("--dest") + 1])
            for name in ("pip-1-py3-none-any.whl", "psutil-7-cp36-abi3-manylinux_2_28_x86_64.whl", "nkeys-1.tar.gz"):
                (folder / name).write_text(name)
        else:
            folder = Path(words[words.index("--wheel-dir") + 1])
            for path in words[words.index("--wheel-dir") + 2 :]:
                (folder / f"{Path(path).name.partition('-')[0]}-1-py3-none-any.whl").write_text("built")

    monkeypatch.setattr(wheels, "_pip", pip)
    return calls


def test_wheels_are_fetched_by_their_hashes_and_kept(pip_calls, tmp_path):
    sent = agent_files(checkout(), tmp_path, BOOKWORM)
    names = [each.name for each in sent]
    assert names[-1] == "ces-agent.service"
    assert {name.partition("-")[0] for name in names[:-1]} == {"pip", "psutil", "nkeys", "ces_common", "edge"}
    (download,) = [words for words in pip_calls if words[0] == "download"]
    assert {"--require-hashes", "--no-deps", "--no-build-isolation"} < set(download)
    assert download[download.index("--python-version") + 1] == "3.11"
    for words in pip_calls:
        if words[0] == "wheel":
            assert {"--no-index", "--no-deps", "--no-build-isolation"} < set(words)
    pip_calls.clear()
    assert agent_files(checkout(), tmp_path, BOOKWORM) == sent
    assert pip_calls == []
    assert not list(tmp_path.glob(".filling-*"))


def test_what_fits_another_machine_alone_is_no_wheel(pip_calls, tmp_path):
    with pytest.raises(NoWheels) as failed:
        agent_files(checkout(), tmp_path, Platform("aarch64", (3, 11), (2, 36)))
    assert failed.value.fault.name == "no-wheel"
    assert "psutil" in failed.value.fault.said
    assert list(tmp_path.iterdir()) == []


def test_pip_that_fails_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(wheels, "PIP", ("sh", "-c", "echo 'ERROR: no route' >&2; exit 1"))
    with pytest.raises(NoWheels) as failed:
        agent_files(checkout(), tmp_path, BOOKWORM)
    assert failed.value.fault.name == "wheels"
    assert "ERROR: no route" in failed.value.fault.said
