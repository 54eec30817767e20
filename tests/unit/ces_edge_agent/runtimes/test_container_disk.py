"""What is asked of the engine for a worker's disk."""

from __future__ import annotations

import pytest

from ces_edge_agent.runtimes.container_disk import FOLDER, folder_of, options


@pytest.mark.parametrize(
    ("config", "folder"),
    [
        (None, FOLDER),
        ({}, FOLDER),
        ({"WorkingDir": ""}, FOLDER),
        ({"WorkingDir": "/"}, FOLDER),
        ({"WorkingDir": "/srv/train"}, "/srv/train"),
    ],
)
def test_a_workers_folder_is_where_its_image_starts(config: dict[str, str] | None, folder: str) -> None:
    assert folder_of({"Config": config}) == folder


def test_the_folder_is_limited_where_the_engine_can() -> None:
    (volume,) = options("/srv/train", 2**30, 5 * 2**30, limited=True)["mounts"]
    assert (volume["Target"], volume["Type"]) == ("/srv/train", "volume")
    assert volume["VolumeOptions"]["DriverConfig"]["Options"] == {"size": str(5 * 2**30)}
    (volume,) = options("/srv/train", 2**30, 5 * 2**30, limited=False)["mounts"]
    assert "VolumeOptions" not in volume or not volume["VolumeOptions"].get("DriverConfig")


def test_tmp_is_half_of_the_memory_unless_it_is_the_folder() -> None:
    assert options("/srv/train", 2**30, 5 * 2**30, limited=False)["tmpfs"]["/tmp"].endswith(f"size={2**29}")
    assert "tmpfs" not in options("/tmp", 2**30, 5 * 2**30, limited=False)


@pytest.mark.parametrize("limited", [False, True])
def test_no_file_grows_larger_than_all_may(limited: bool) -> None:
    (limit,) = options("/srv/train", 2**30, 5 * 2**30, limited)["ulimits"]
    assert (limit["Name"], limit["Soft"], limit["Hard"]) == ("fsize", 5 * 2**30, 5 * 2**30)
