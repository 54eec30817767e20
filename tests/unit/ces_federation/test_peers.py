from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ces_common.service import BadSetup
from ces_federation.peers import read_peers

TOKEN = "0123456789abcdef0123456789abcdef"


def written(folder: Path, peers: dict[str, Any], mode: int = 0o600) -> Path:
    file = folder / "regions.yaml"
    file.write_text(yaml.safe_dump({"peers": peers}))
    file.chmod(mode)
    return file


def test_nobody_is_accepted_unless_named(tmp_path: Path) -> None:
    peers = read_peers(written(tmp_path, {"b": {"token": TOKEN}}), "a")
    assert peers["b"].accept == []
    assert peers["b"].max_priority == 50
    assert TOKEN not in repr(peers)


@pytest.mark.parametrize(
    ("peers", "mode", "why"),
    [
        ({"b": {"token": TOKEN}}, 0o644, "chmod 600"),
        ({"b": {"token": "short"}}, 0o600, "32 characters"),
        ({"b": {"token": TOKEN, "accept": ["default"]}}, 0o600, "tenants: say as whose"),
        ({"a": {"token": TOKEN}}, 0o600, "this region itself"),
        ({"b": {"token": TOKEN}, "c": {"token": TOKEN}}, 0o600, "a token of its own"),
        ({"B.x": {"token": TOKEN}}, 0o600, "peers"),
        ({"b": {"token": TOKEN, "admin": True}}, 0o600, "admin"),
    ],
)
def test_a_bad_file_is_refused_with_the_remedy(tmp_path: Path, peers: dict[str, Any], mode: int, why: str) -> None:
    with pytest.raises(BadSetup, match=why) as refused:
        read_peers(written(tmp_path, peers, mode), "a")
    assert TOKEN not in str(refused.value)
