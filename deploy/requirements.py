"""Print what packages need from outside CES, one requirement per line: for the locks.

    python requirements.py ./libs/ces_common[db,tls] ./services/manager hatchling

An argument that is no folder is a requirement itself.
"""

import re
import sys
import tomllib
from pathlib import Path


def requirements(folder: str, extras: list[str]) -> list[str]:
    project = tomllib.loads(Path(folder, "pyproject.toml").read_text())["project"]
    found = list(project["dependencies"])
    for extra in extras:
        found += project["optional-dependencies"][extra]
    return [requirement for requirement in found if not requirement.startswith("ces-")]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        folder, *extras = re.split(r"[\[\],]+", argument.rstrip("]"))
        print("\n".join(requirements(folder, extras) if "/" in folder else [argument]))
