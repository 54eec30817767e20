"""Write the generated parts of the documentation: ``python docs/generate.py [--check]`` (``make docs``).

Whole files lie in docs/reference. In pages written by hand, what stands between ``<!-- generated: NAME -->`` and
``<!-- end of NAME -->`` is generated too. ``--check`` writes nothing and ends with 1 where something is out of date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from generator import (
    cli,
    figures,
    imports,
    jobfile,
    limits,
    messages,
    metrics,
    openapi,
    queuefile,
    routes,
    scores,
    settings,
    shares,
)

DOCS = Path(__file__).resolve().parent
FILES: dict[str, Callable[[], str]] = {
    "reference/messages.md": messages.page,
    "reference/cli.md": cli.page,
    "reference/openapi.json": lambda: json.dumps(openapi.description(), indent=2) + "\n",
    "reference/job-file.schema.json": lambda: json.dumps(jobfile.schema(), indent=2) + "\n",
}
REGIONS: dict[str, tuple[str, Callable[[], str]]] = {
    "settings": ("settings.md", settings.tables),
    "limits": ("limits.md", limits.tables),
    "metrics": ("metrics.md", metrics.tables),
    "roles": ("access.md", routes.by_role),
    "job fields": ("job-file.md", jobfile.tables),
    "application fields": ("applications.md", jobfile.application_tables),
    "application limits": ("applications.md", limits.of_applications),
    "queue fields": ("scheduler.md", queuefile.tables),
    "packages": ("architecture.md", imports.packages),
    "core floors": ("architecture.md", imports.floors),
    "traffic classes": ("data-plane.md", shares.classes),
    "reference core": ("node-scores.md", scores.reference),
    **figures.regions(),
}


def expected_texts() -> dict[Path, str]:
    """Every file that is generated, or generated in part, with what it should hold."""
    texts = {DOCS / name: make() for name, make in FILES.items()}
    for name, (page, make) in REGIONS.items():
        path = DOCS / page
        texts[path] = with_region(texts.get(path) or path.read_text(), name, make())
    return texts


def with_region(page: str, name: str, content: str) -> str:
    """The page with a region's content replaced. Raises ValueError where the region is not marked exactly once."""
    start, end = f"<!-- generated: {name} -->", f"<!-- end of {name} -->"
    parts = re.split(f"({re.escape(start)}|{re.escape(end)})", page)
    if parts[1::2] != [start, end]:
        raise ValueError(f"{start} ... {end} must stand in the page once")
    return f"{parts[0]}{start}\n\n{content.strip()}\n\n{end}{parts[4]}"


def unexplained() -> list[str]:
    """Settings and fields of files that words.py lacks or that are no more."""
    return settings.unexplained() + jobfile.unexplained() + queuefile.unexplained()


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"], ["--pictures"]):
        print("usage: python docs/generate.py [--check | --pictures]", file=sys.stderr)
        return 2
    if arguments == ["--pictures"]:
        for picture in figures.draw_pictures():
            print(f"drew {picture.relative_to(DOCS.parent)}")
        return 0
    if missing := unexplained():
        print(
            f"docs/generator/words.py must explain exactly what there is; see to {', '.join(missing)}", file=sys.stderr
        )
        return 1
    stale = [path for path, text in expected_texts().items() if not path.exists() or path.read_text() != text]
    if arguments:
        for path in stale:
            print(f"{path.relative_to(DOCS.parent)} is out of date: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    texts = expected_texts()
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(texts[path])
        print(f"wrote {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
