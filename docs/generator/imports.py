"""Which package imports which, from the sources; and the floors of the core, from the import linter's contract."""

from __future__ import annotations

import ast
import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

from generator.markdown import code, table

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [*sorted(ROOT.glob("libs/*")), *sorted(ROOT.glob("services/*")), ROOT / "workloads", ROOT / "experiments"]
"""Every folder that installs on its own."""


def sources() -> dict[str, Path]:
    """Each package's name with the folder of its sources."""
    return {path.name: path for folder in FOLDERS for path in sorted(folder.glob("src/ces_*"))}


def packages() -> str:
    """One row per package: where it lies, what it holds, what else of CES it imports."""
    rows = []
    for name, source in sources().items():
        folder = source.parents[1]
        manifest = tomllib.loads((folder / "pyproject.toml").read_text())
        what = manifest["project"]["description"].removeprefix("CES").removeprefix(":").strip()
        others = sorted(_imported(source) - {name})
        rows.append((code(folder.relative_to(ROOT)), what, ", ".join(map(code, others)) or "nothing of CES"))
    return table(("folder", "what it holds", "what it imports"), rows)


def floors() -> str:
    """The core's parts, lowest first; each imports only those above its row."""
    linter = ConfigParser()
    linter.read(ROOT / ".importlinter")
    layers = linter["importlinter:contract:core-layers"]["layers"].split("\n")
    rows = []
    for floor, layer in enumerate(reversed([line for line in layers if line.strip()]), start=1):
        for name in (part.strip() for part in layer.split("|")):
            rows.append((str(floor), code(name), _first_sentence(name)))
    return table(("floor", "part", "what it holds"), rows)


def _imported(source: Path) -> set[str]:
    found: set[str] = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            found |= {name.partition(".")[0] for name in names}
    return found & sources().keys()


def _first_sentence(name: str) -> str:
    package, *inner = name.split(".")
    path = sources()[package].joinpath(*inner)
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    return re.split(r"(?<=\.) (?=[A-Z`])", text)[0].replace("``", "`")
