"""Bring the libraries of the dashboard into its folder, or verify that they lie there as recorded.

    python deploy/vendor_ui.py            fetch, verify against the recorded integrity, write
    python deploy/vendor_ui.py --check    verify the files that lie there; needs no network
    python deploy/vendor_ui.py --derive   fetch again, and compare with what lies there, bit for bit
    python deploy/vendor_ui.py --record   fetch, write, and record what came: after a version below was changed

Fetching needs the address of an npm registry in NPM_CONFIG_REGISTRY. Browsers resolve relative imports only, and
nothing is built when the dashboard is served, so bare imports are rewritten here.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

REGISTRY: Final = "NPM_CONFIG_REGISTRY"
FOLDER: Final = Path(__file__).parents[1] / "services/manager/src/ces_manager/ui/vendor"
LOCK: Final = "sources.json"
LARGEST: Final = 8 * 2**20  # bytes of a package, packed or unpacked file by file
TIMEOUT_S: Final = 60
# In `import ... from "x"`, `export ... from "x"` and `import "x"`, also where nothing stands between them.
_IMPORT: Final = re.compile(r'(\bfrom\s*|\bimport\s*)"([^"]+)"')
_SOURCE_MAP: Final = re.compile(r"^//# sourceMappingURL=.*$|(?<=;)//# sourceMappingURL=.*$", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """What is taken of a package. ``files``: name here -> path in the package. ``modules``: what other packages
    import -> name here. ``appended``: name here -> a line added at its end."""

    name: str
    version: str
    files: Mapping[str, str]
    modules: Mapping[str, str] = field(default_factory=dict)
    appended: Mapping[str, str] = field(default_factory=dict)

    @property
    def licence_file(self) -> str:
        return f"{self.name.removeprefix('@').replace('/', '-')}.LICENSE.txt"


def _d3(name: str, version: str) -> Package:
    return Package(name, version, {f"{name}.js": f"dist/{name}.min.mjs"}, {name: f"{name}.js"})


PACKAGES: Final = (
    Package(
        "preact",
        "11.2.0",
        {"preact.js": "dist/preact.mjs", "preact-hooks.js": "hooks/dist/hooks.mjs"},
        {"preact": "preact.js", "preact/hooks": "preact-hooks.js"},
    ),
    Package("htm", "3.1.1", {"htm.js": "dist/htm.mjs"}),
    Package(
        "@preact/signals-core",
        "1.14.5",
        {"signals-core.js": "dist/signals-core.mjs"},
        {"@preact/signals-core": "signals-core.js"},
    ),
    Package("@preact/signals", "2.11.4", {"signals.js": "dist/signals.mjs"}),
    Package(
        "uplot",
        "1.6.32",
        {"uplot.js": "dist/uPlot.iife.min.js", "uplot.css": "dist/uPlot.min.css"},
        appended={"uplot.js": "export default uPlot;"},  # its minified build is made for script elements
    ),
    _d3("d3-dispatch", "3.0.2"),
    _d3("d3-timer", "3.0.2"),
    _d3("d3-quadtree", "3.0.2"),
    _d3("d3-force", "3.0.1"),
)


class Refused(Exception):
    """Something is not as it is recorded, or cannot be had; the text says what to do."""


def rewritten(text: str, modules: Mapping[str, str]) -> str:
    """A module with relative imports and without the address of its source map. Raises Refused for an import of a
    package that does not lie here."""

    def relative(found: re.Match[str]) -> str:
        target = found[2]
        if not target.startswith("."):
            if target not in modules:
                raise Refused(f"it imports {target}, which is not among PACKAGES: add it")
            target = f"./{modules[target]}"
        return f'{found[1]}"{target}"'

    return _IMPORT.sub(relative, _SOURCE_MAP.sub("", text)).rstrip("\n") + "\n"


def contents(package: Package, tarball: bytes, modules: Mapping[str, str]) -> tuple[str, dict[str, bytes]]:
    """The licence that the package names, and the files that are written of it. Raises Refused."""
    with tarfile.open(fileobj=io.BytesIO(tarball), mode="r:gz") as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers() if member.isfile()}

        def read(path: str) -> bytes:
            if path not in members or members[path].size > LARGEST:
                raise Refused(f"{package.name} {package.version} has no file {path}, or one that is too large")
            held = archive.extractfile(members[path])
            assert held is not None  # it is a file
            return held.read()

        described = json.loads(read("package.json"))
        if (described["name"], described["version"]) != (package.name, package.version):
            raise Refused(f"the archive of {package.name} {package.version} says that it is something else")
        licence = str(described["license"])
        written = {package.licence_file: read("LICENSE")}
        for name, path in package.files.items():
            text = read(path).decode()
            if name.endswith(".js"):
                text = rewritten(text, modules)
            if name in package.appended:
                text += package.appended[name] + "\n"
            notice = f"/* {package.name} {package.version}, {licence} ({package.licence_file}). "
            notice += "Changed by deploy/vendor_ui.py, which says how. */\n"
            written[name] = (notice + text).encode()
    return licence, written


def fetched(package: Package, registry: str) -> bytes:
    """The package's archive. Raises Refused."""
    base = package.name.rpartition("/")[2]
    url = f"{registry.rstrip('/')}/{package.name}/-/{base}-{package.version}.tgz"
    if not url.startswith(("https://", "http://")):
        raise Refused(f"{REGISTRY} must be an address that begins with https://")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310 (the scheme was checked)
            found: bytes = answer.read(LARGEST + 1)
    except (urllib.error.URLError, TimeoutError) as error:
        raise Refused(f"{package.name} {package.version} cannot be fetched from {REGISTRY}: {error}") from error
    if len(found) > LARGEST:
        raise Refused(f"{package.name} {package.version} is larger than {LARGEST} bytes")
    return found


def integrity(content: bytes) -> str:
    """As npm writes it: ``sha512-`` and the digest in base64."""
    return f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"


def derived(registry: str, lock: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The lock file's content and all other files, made from what the registry gives. ``lock``: with whose integrity
    archives must agree; None to accept what comes. Raises Refused."""
    modules = {module: name for package in PACKAGES for module, name in package.modules.items()}
    recorded = {} if lock is None else {each["name"]: each for each in lock["packages"]}
    packages: list[dict[str, Any]] = []
    files: dict[str, bytes] = {}
    for package in PACKAGES:
        tarball = fetched(package, registry)
        found, known = integrity(tarball), recorded.get(package.name)
        if lock is not None and (known is None or known["version"] != package.version):
            raise Refused(f"{package.name} {package.version} is not recorded: run again with --record, and review")
        if known is not None and known["integrity"] != found:
            raise Refused(f"{package.name} {package.version} is not what was recorded: {found}")
        licence, written = contents(package, tarball, modules)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(written.items())}
        entry = {"name": package.name, "version": package.version, "licence": licence, "integrity": found}
        packages.append(entry | {"files": hashes})
        files |= written
    return {"packages": packages}, files


def differences(lock: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """What in the folder is not as recorded, in words."""
    recorded = {name: sha for each in lock["packages"] for name, sha in each["files"].items()}
    pinned = [(package.name, package.version) for package in PACKAGES]
    if [(each["name"], each["version"]) for each in lock["packages"]] != pinned:
        yield f"{LOCK} does not record the versions that this script names"
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    for name in sorted(present - recorded.keys() - {LOCK}):
        yield f"{name} lies there and is not recorded"
    for name, sha in sorted(recorded.items()):
        if name not in present:
            yield f"{name} is missing"
        elif hashlib.sha256((folder / name).read_bytes()).hexdigest() != sha:
            yield f"{name} was changed"


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0 where all is as recorded."""
    parser = argparse.ArgumentParser(description="Bring the dashboard's libraries into its folder, or verify them.")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--check", action="store_true", help="verify the files that lie there; needs no network")
    modes.add_argument("--derive", action="store_true", help="fetch again, and compare bit for bit")
    modes.add_argument("--record", action="store_true", help="write and record whatever comes, after a new version")
    given = parser.parse_args(arguments)
    try:
        lock = None if given.record else json.loads((FOLDER / LOCK).read_text())
        if given.check:
            assert lock is not None
            wrong = list(differences(lock, FOLDER))
        else:
            registry = os.environ.get(REGISTRY)
            if not registry:
                raise Refused(f"{REGISTRY} is not set: give it the address of an npm registry")
            made, files = derived(registry, lock)
            files[LOCK] = (json.dumps(made, indent=2) + "\n").encode()
            wrong = []
            if given.derive:
                wrong = list(differences(made, FOLDER))
                if (FOLDER / LOCK).read_bytes() != files[LOCK]:
                    wrong.append(f"{LOCK} does not record what was derived")
            else:
                FOLDER.mkdir(parents=True, exist_ok=True)
                for name, content in files.items():
                    (FOLDER / name).write_bytes(content)
    except Refused as error:
        wrong = [str(error)]
    except FileNotFoundError as error:
        wrong = [f"{error.filename} is missing: run with --record"]
    for line in wrong:
        print(f"vendor_ui: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
