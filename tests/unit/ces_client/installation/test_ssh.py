"""Which host keys the user's own file holds."""

from __future__ import annotations

import pytest
from fake_device import KEY, FakeDevice

from ces_client.installation.host_keys import read_keys
from ces_client.installation.ssh import Ssh

OTHER = "elsewhere ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ"


@pytest.mark.parametrize("there", ["", OTHER, OTHER + "\n", "\n"])
def test_a_key_is_a_line_of_its_own(device: FakeDevice, there: str) -> None:
    file = device.folder / "known_hosts"
    file.write_text(there)
    [key] = read_keys(KEY)
    assert Ssh("root@roof").remember(key) == file
    assert file.read_text().splitlines() == [*there.splitlines(), KEY]
    assert file.read_text().endswith("\n")
