from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

from ces_common.natsauth import init_trust
from ces_testbed.hub import MOST_REGIONS, HubFiles, blocks, join_hub, places, prepare, region_names
from ces_testbed.spec import Files


def test_no_two_regions_share_an_address() -> None:
    found = blocks(MOST_REGIONS)
    assert len(found) == MOST_REGIONS
    assert not any(one.overlaps(other) for one, other in combinations(found, 2))
    assert {block.prefixlen for block in found} == {16}


def test_regions_are_counted() -> None:
    assert region_names("local", 3) == ["local1", "local2", "local3"]


def test_what_the_hub_and_its_regions_need_is_prepared(tmp_path: Path) -> None:
    files = HubFiles(tmp_path / "hub")
    regions = {name: tmp_path / name for name in region_names("r", 2)}
    hub = prepare(files, "r", regions)
    assert files.read() == hub
    assert hub.port != hub.client_port
    assert "jetstream" not in files.config.read_text()
    for path in (files.credentials("r1"), files.credentials("r2")):
        assert path.stat().st_mode & 0o077 == 0
    there = places(files, hub)
    assert {name: place.peers for name, place in there.items()} == {"r1": ["r2"], "r2": ["r1"]}
    own = Files(tmp_path / "r1")
    own.prepare()
    leaf = join_hub("r1", there["r1"], own, init_trust(tmp_path / "trust"))
    assert own.regions.stat().st_mode & 0o077 == 0
    assert json.loads(own.regions.read_text())["peers"].keys() == {"r2"}
    assert leaf.account not in (init_trust(tmp_path / "trust").account, "")
    assert leaf.hubs == (f"tls://127.0.0.1:{hub.port}",)


def test_a_damaged_record_is_none(tmp_path: Path) -> None:
    files = HubFiles(tmp_path)
    assert files.read() is None
    files.record.write_text(json.dumps({"name": "x"}))
    assert files.read() is None
