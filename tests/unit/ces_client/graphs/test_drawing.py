"""Pictures of parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_client.errors import BadInput
from ces_client.graphs.drawing import check_kind, draw_parts
from ces_common.graphfile import ApplicationGraph

pytest.importorskip("matplotlib", reason="an extra of ces-client: it draws")
GRAPH = ApplicationGraph.model_validate(
    {
        "name": "app",
        "vertices": [{"name": "first<b>"}, {"name": "$second$"}, {"name": "third"}],
        "edges": [{"src": "first<b>", "dst": "$second$", "bandwidth": {"min": 1, "max": 9}}],
    }
)


def test_a_picture_names_every_vertex_with_its_part(tmp_path: Path) -> None:
    file = tmp_path / "parts.svg"
    draw_parts(file, GRAPH, [0, 1, 1], "app: 2 parts")
    text = file.read_text()
    assert text.startswith("<?xml")
    assert all(f"<!-- {each} -->" in text for each in ("first&lt;b&gt; (1)", "$second$ (2)", "third (2)"))
    draw_parts(tmp_path / "parts.png", GRAPH, [0, 1, 1], "app: 2 parts")
    assert (tmp_path / "parts.png").read_bytes().startswith(b"\x89PNG")


def test_only_two_kinds_are_drawn(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No picture"):
        check_kind(Path("parts.txt"))
    with pytest.raises(BadInput, match="No picture"):
        draw_parts(tmp_path / "none" / "parts.svg", GRAPH, [0, 1, 1], "app")


def test_names_in_any_script_are_drawn_without_a_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    graph = ApplicationGraph.model_validate({"name": "app", "vertices": [{"name": "摄像头"}, {"name": "b"}]})
    draw_parts(tmp_path / "parts.png", graph, [0, 1], "app: 2 parts")
    assert [each for each in recwarn if "Glyph" in str(each.message)] == []
    assert (tmp_path / "parts.png").stat().st_size > 1000
