"""Ways of dividing side by side."""

from __future__ import annotations

from rich.console import Console

from ces_client.view.decomposition import Row, levels_table, parts_table


def text(renderable: object) -> str:
    console = Console(width=200)
    with console.capture() as found:
        console.print(renderable)
    return found.get()


def test_levels_stand_above_what_they_are_compared_with() -> None:
    own = Row("clusters", 3, True, 2e6, share=0.25, gap=0.0, largest=(1500, 2**30), placed=0.75)
    shown = text(levels_table([own], [Row("random", 3, cut=8e6, spread=1e6, share=1.0), Row("metis", 3, said="none")]))
    for word in (
        "* clusters",
        "2 Mbit/s",
        "25.0%",
        "1.5 cores, 1 GiB",
        "proven",
        "0.7500",
        "8 Mbit/s ± 1 Mbit/s",
        "none",
    ):
        assert word in shown


def test_no_column_for_what_nobody_looked_for() -> None:
    assert "composite" not in text(levels_table([Row("clusters", 2, cut=1.0)], []))


def test_scripts_get_the_same() -> None:
    row = Row("optimal", 2, cut=5.0, gap=0.1, largest=(100, 200))
    assert row.document() | {"name": "optimal", "gap": 0.1, "largest_cpu": 100} == row.document()


def test_long_parts_are_cut_short() -> None:
    shown = text(parts_table([("part1-0", 100, 2**20, 2, "any", [f"v{i}" for i in range(9)])]))
    assert "v5 and 3 more" in shown
    assert "gpu" in shown
