from __future__ import annotations

from client_views import wide

from ces_client.view.regions import region_table
from ces_common.messages.regions import RegionView, Room, Totals

SUMS = Totals(
    epoch="e", nodes=3, free=Room(cpu=1500, memory=2**30), total=Room(cpu=6000, memory=4 * 2**30), queued=2, wait_s=90
)


def test_regions_show_what_is_used_and_whose_jobs_they_accept() -> None:
    here = RegionView(name="north", state="here", age_s=0.0, summary=SUMS)
    other = RegionView(name="south", state="ready", age_s=1.4, summary=SUMS, accepts=["red", "blue"])
    closed = RegionView(name="east", state="old", age_s=75.0, summary=SUMS)
    head, *rows = wide(region_table([here, other, closed, RegionView(name="west", state="silent")]))
    assert head.split() == ["REGION", "STATE", "AGE", "NODES", "CPU", "MEMORY", "GPU", "QUEUE", "ACCEPTS"]
    assert " ".join(rows[0].split()) == "north here 0s 3 4.5/6 cores 3 GiB / 4 GiB – 2, 1m30s –"
    assert rows[1].split()[-2:] == ["red,", "blue"]
    assert rows[2].split()[-1] == "nobody"
    assert rows[3].split() == ["west", "silent", *["–"] * 7]


def test_why_nothing_is_placed_in_a_region_is_said() -> None:
    why = "its addresses 10.64.0.0/16 overlap this region's 10.64.0.0/16: give it another block"
    view = RegionView(name="south", state="refused", age_s=1.0, summary=SUMS, remark=why)
    assert why in " ".join(wide(region_table([view]))[1].split())
