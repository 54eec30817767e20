"""The pages of the documentation, and what stands in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
)
HAND_WRITTEN = [page for page in PAGES if "reference" not in page.parts]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
each_own_page = pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path, *languages: str) -> list[str]:
    """The page's fenced blocks in one of the languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [text for language, text in found if language in languages]


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def command_lines(page: Path, program: str) -> list[str]:
    """Everything on the page that calls ``program``: lines of shell blocks, and text set as code."""
    lines = [line for text in blocks(page, "sh", "") for line in text.replace("\\\n", " ").splitlines()]
    lines += [line.removeprefix("    ") for line in without_blocks(page).splitlines() if line.startswith("    ")]
    calls = [part for line in lines for part in re.split(r"&&|\||;", line.partition(" #")[0])]
    inside = [
        re.search(rf"(?:^|[\s/])({program}(?: .*)?)$", call.strip()) for call in calls
    ]  # also behind sudo and the like
    alone = [re.match(rf"{program} .*", text) for text in re.findall(r"`([^`\n]+)`", without_blocks(page))]
    return [match.group(match.lastindex or 0) for match in (*inside, *alone) if match]
