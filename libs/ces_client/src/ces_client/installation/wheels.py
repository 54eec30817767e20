"""The wheels that make an agent on a device of some architecture: fetched once, by known hashes, and kept."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ces_client.installation.faults import Fault

LOCK = "deploy/locks/edge-agent.txt"
PIP_LOCK = "deploy/locks/base-python.txt"
UNIT = "deploy/systemd/ces-agent.service"
OWN = ("libs/ces_common", "services/edge-agent")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
PIP_S = 600.0
_OLDEST_GLIBC = {"x86_64": 5}  # minor versions that wheels are made for; 17 on all others
_LEGACY = {"x86_64": ("manylinux1", "manylinux2010", "manylinux2014"), "aarch64": ("manylinux2014",)}


class NoWheels(Exception):
    def __init__(self, name: str, said: str, log: Sequence[str] = ()) -> None:
        super().__init__(said)
        self.fault = Fault("wheels", name, said, log)


@dataclass(frozen=True)
class SentFile:
    """One that goes to the device. ``size`` in bytes."""

    name: str
    path: Path
    size: int
    sha256: str


@dataclass(frozen=True)
class Platform:
    """What wheels have to fit: a device's machine, its Python (major, minor) and its glibc (major, minor)."""

    machine: str
    python: tuple[int, int]
    glibc: tuple[int, int]

    @property
    def name(self) -> str:
        return f"{self.machine}-cp{self.python[0]}{self.python[1]}-glibc{self.glibc[0]}.{self.glibc[1]}"

    def tags(self) -> list[str]:
        """As pip calls them, the newest first."""
        major, minor = self.glibc
        oldest = _OLDEST_GLIBC.get(self.machine, 17)
        newest = [f"manylinux_{major}_{each}_{self.machine}" for each in range(minor, oldest - 1, -1)]
        return [*newest, *(f"{name}_{self.machine}" for name in _LEGACY.get(self.machine, ())), f"linux_{self.machine}"]


def wheels_folder() -> Path:
    """Where wheels are kept unless the user says otherwise."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ces" / "wheels"


def checkout() -> Path:
    """The checkout that this command is part of, or is called in. Raises NoWheels."""
    for folder in (*Path(__file__).resolve().parents, Path.cwd(), *Path.cwd().parents):
        if all((folder / each).exists() for each in (LOCK, PIP_LOCK, UNIT, *OWN)):
            return folder
    raise NoWheels("source", "neither this command nor the working folder is part of a checkout of CES")


def agent_files(source: Path, kept: Path, platform: Platform) -> list[SentFile]:
    """Wheels and unit. Raises NoWheels, OSError."""
    folders = [_third_party(source, kept, platform), _own(source, kept)]
    paths = sorted(path for folder in folders for path in folder.glob("*.whl"))
    return [_sent(path) for path in (*paths, source / UNIT)]


def stanzas(lock: str) -> dict[str, str]:
    """The requirements of a lock with their hashes, by name."""
    parts = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
    return {re.split(r"[=\s\[]", part, maxsplit=1)[0]: part for part in parts if part[:1].isalnum()}


def _sent(path: Path) -> SentFile:
    content = path.read_bytes()
    return SentFile(path.name, path, len(content), hashlib.sha256(content).hexdigest())


def _third_party(source: Path, kept: Path, platform: Platform) -> Path:
    pip = stanzas((source / PIP_LOCK).read_text())["pip"]
    lock = (source / LOCK).read_text() + pip
    place = kept / f"{platform.name}-{hashlib.sha256(lock.encode()).hexdigest()[:16]}"
    with _filled(place) as folder:
        if folder is not None:
            (folder / "lock.txt").write_text(lock)
            python = f"{platform.python[0]}.{platform.python[1]}"
            tags = [word for tag in platform.tags() for word in ("--platform", tag)]
            _pip("download", "--no-deps", "--require-hashes", "--no-build-isolation", "--implementation", "cp",
                 "--python-version", python, *tags, "--dest", str(folder), "-r", str(folder / "lock.txt"))  # fmt: skip
            for archive in [path for path in folder.iterdir() if path.suffix not in (".whl", ".txt")]:
                _build(folder, str(archive))  # published as source alone
                archive.unlink()
            _check_pure(folder, platform)
    return place


def _own(source: Path, kept: Path) -> Path:
    digest = hashlib.sha256()
    for own in OWN:
        for path in sorted((source / own).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes() + b"\0")
    place = kept / f"ces-{digest.hexdigest()[:16]}"
    with _filled(place) as folder:
        if folder is not None:
            _build(folder, *(str(source / each) for each in OWN))
    return place


@contextmanager
def _filled(place: Path) -> Iterator[Path | None]:
    """A folder to be filled, which becomes ``place`` once it is; None where that is there already."""
    if place.is_dir():
        yield None
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".filling-", dir=place.parent))
    try:
        yield folder
        if not place.is_dir():  # another may have been quicker
            folder.rename(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _build(folder: Path, *sources: str) -> None:
    _pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder), *sources)


def _check_pure(folder: Path, platform: Platform) -> None:
    """What was built here must run there."""
    local = [path.name for path in folder.glob("*.whl") if path.stem.endswith(f"-linux_{platform.machine}")]
    other = [path.name for path in folder.glob("*.whl") if not path.stem.endswith(("-any", platform.machine))]
    if local + other:
        raise NoWheels("no-wheel", f"no wheel for {platform.name}: {', '.join(sorted(local + other))}")


def _pip(*words: str) -> None:
    try:
        done = subprocess.run([*PIP, *words], capture_output=True, text=True, timeout=PIP_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoWheels("wheels", f"pip {words[0]} did not end within {PIP_S:g} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "pip failed")
        raise NoWheels("wheels", f"pip {words[0]}: {said}", lines[-6:])
