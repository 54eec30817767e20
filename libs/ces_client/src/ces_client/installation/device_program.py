"""The modules of ``on_device`` as one program for the device's Python, and the command that runs it."""

from __future__ import annotations

import shlex
from importlib.resources import files

PACKAGE = "ces_client.installation.on_device"
MODULES = ("machine", "facts", "setup", "removal", "server")  # each after those that it imports

# The first Python that is new enough, or else the one there is, as root; it reads its program from standard input.
_LAUNCHER = """
for found in python3 python3.11 python3.12 python3.13 python3.14 python3; do
  "$found" -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && break
done
command -v "$found" >/dev/null || { echo "ces: no python3" >&2; exit 1; }
read="import sys; source = sys.stdin.buffer; exec(source.read(int(source.readline())))"
if [ "$(id -u)" = 0 ]; then exec "$found" -I -c "$read"; else exec sudo -n "$found" -I -c "$read"; fi
"""
COMMAND = f"exec sh -c {shlex.quote(_LAUNCHER)}"


def program() -> bytes:
    """Loads the modules under their own names, and runs the last one. Holds nothing of any cluster or device."""
    lines = ["import sys, types"]
    for name in MODULES:
        source = files(PACKAGE).joinpath(f"{name}.py").read_text(encoding="utf-8")
        full = f"{PACKAGE}.{name}"
        lines.append(f"module = sys.modules[{full!r}] = types.ModuleType({full!r})")
        lines.append(f"exec(compile({source!r}, {name!r}, 'exec'), module.__dict__)")
    return "\n".join([*lines, "module.main()", ""]).encode()
