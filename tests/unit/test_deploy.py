"""What images take from package indexes: files of known hashes, and nothing else."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = {path.name for path in (ROOT / "deploy/locks").glob("*.txt")}
DOCKERFILES = sorted(
    path for folder in ("deploy", "services", "workloads") for path in (ROOT / folder).rglob("Dockerfile*")
)
SCRIPTS = sorted((ROOT / "deploy/airgap").glob("*.sh"))  # some hold Dockerfiles
OFFLINE = {"--no-index", "--no-deps", "--no-build-isolation"}
FETCHES = re.compile(r"\b(pip3?(?:\.\d+)?|pipx|uv|easy_install|poetry|conda|npm|curl|git clone)\s")
TOLD = 'source deploy/packages.sh; for name in "${!needs[@]}"; do echo "$name ${needs[$name]}"; done'
ANSWER = subprocess.run(["bash", "-euc", TOLD], cwd=ROOT, capture_output=True, text=True, check=True)
NEEDS = dict(line.split(maxsplit=1) for line in ANSWER.stdout.splitlines())


def commands(text: str) -> list[list[str]]:
    """The words of each command that may fetch something, from the fetching program's name on."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    parts = re.split(r"&&|\|\||[;|\n]", lines.replace("\\\n", " "))
    found = [(part, FETCHES.search(part)) for part in parts]
    return [part[match.start() :].split() for part, match in found if match]


def fault(words: list[str]) -> str | None:
    """Why a command may install something that no lock names; None where it may not."""
    if words[:2] != ["pip", "install"]:
        return "not an installation by pip"
    options = {word for word in words if word.startswith("-")}
    rest = re.sub(r"\$\{PIP_FLAGS\}|--target \S+|-r \S+|(?<= )-\S+", "", " ".join(words[2:]) + " ").split()
    rest = [word for word in rest if not word.startswith("-")]
    if "--require-hashes" in options:
        files = re.findall(r"-r (\S+)", " ".join(words))
        if rest or not files:
            return "hashes are known for locks alone"
        unknown = [file for file in files if Path(file).name not in LOCKS | {"requirements.txt"}]
        return f"no locks: {unknown}" if unknown else None
    if not options >= OFFLINE:
        return "neither by hashes nor without an index"
    return None if rest and all(word.startswith(("./", "/tmp/build/")) for word in rest) else "not CES's own folders"


@pytest.mark.parametrize("path", [*DOCKERFILES, *SCRIPTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_images_install_by_hashes_alone(path: Path) -> None:
    text = path.read_text()
    found = [words for words in commands(text) if "config" not in words]
    faults = [f"{' '.join(words)}: {why}" for words in found if (why := fault(words))]
    assert not faults
    assert not re.findall(r"^ADD\b.*", text, re.MULTILINE), "ADD can fetch: COPY cannot"


@pytest.mark.parametrize(
    "line",
    [
        "RUN pip install --no-cache-dir wheel",
        "RUN pip install -c constraints.txt -r common.txt",
        "RUN pip install --require-hashes -r other.txt",
        "RUN pip install --require-hashes -r build.txt hatchling",
        "RUN true && python -m pip install --upgrade pip",
        "RUN pip install --no-deps ./libs/ces_common",
        "RUN pip install --no-index --no-deps --no-build-isolation hatchling",
        "RUN pip3 install hatchling",
        "RUN curl -L https://example.org/program -o /bin/program",
    ],
)
def test_an_installation_of_anything_else_is_found(line: str) -> None:
    (words,) = commands(line)
    assert fault(words)


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_locks_of_an_image_are_those_of_the_packages_in_it(path: Path) -> None:
    text = path.read_text()
    found = commands(text)
    locks = {Path(word).stem for words in found for word in words if word.endswith(".txt")} - {"requirements"}
    folders = [word for words in found if "--no-index" in words for word in words if "/" in word]
    own = {re.sub(r"^/tmp/build", ".", folder) for folder in folders}
    needed = {re.sub(r"\[.*", "", word) for lock in locks for word in NEEDS[lock].split() if word.startswith("./")}
    assert own == needed
    assert {f"deploy/locks/{lock}.txt" for lock in locks} == set(re.findall(r"deploy/locks/\S+\.txt", text))
