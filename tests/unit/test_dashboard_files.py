"""What holds for the dashboard's own files without a browser: what is vendored is what was recorded, nothing makes
markup of text, and every sentence has its Chinese."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ces_client.audit import NOT_CHECKED, PROMISES

ROOT = Path(__file__).parents[2]
UI = ROOT / "services/manager/src/ces_manager/ui"
OURS = sorted((UI / "app").rglob("*.js"))
WORDS = sorted((UI / "app/words").glob("zh*.js"))
LINES = 300
# One string in double quotes: the first argument of t and tx, and the last of tn, since Chinese has no form for one.
SENTENCE = re.compile(r'\b(?:t|tx)\(\s*("(?:[^"\\]|\\.)*")|\btn\([^"]*?"(?:[^"\\]|\\.)*",\s*("(?:[^"\\]|\\.)*")')
KEY = re.compile(r'(?:^|[,{\s])(?:("(?:[^"\\]|\\.)*")|([A-Za-z_]\w*)):\s+"', re.MULTILINE)


def sentences() -> dict[str, str]:
    """Each with the file that says it."""
    found = {}
    for file in OURS:
        if file not in WORDS:
            for groups in SENTENCE.findall(file.read_text()):
                found.update({json.loads(text): file.name for text in groups if text})
    return found


def test_what_is_vendored_is_what_was_recorded() -> None:
    checked = subprocess.run([sys.executable, ROOT / "deploy/vendor_ui.py", "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_sentence_has_its_chinese() -> None:
    known = {json.loads(quoted) if quoted else bare for file in WORDS for quoted, bare in KEY.findall(file.read_text())}
    said = sentences()
    assert len(said) > 300
    assert {text: file for text, file in said.items() if text not in known} == {}


def test_promises_are_said_in_the_auditors_words() -> None:
    source = (UI / "app/parts/audit_text.js").read_text()
    said = r'^  "?([a-z-]+)"?: \(\) => \(\{\n    text: t\("(.*)"\),\n    checked: t\("(.*)"\),$'
    promised = [(kind, text, checked) for kind, text, checked in re.findall(said, source, re.MULTILINE)]
    assert promised == [(kind, promise.text, promise.checked) for kind, promise in PROMISES.items()]
    assert re.findall(r'^  t\("(.*)"\),$', source, re.MULTILINE) == list(NOT_CHECKED)


@pytest.mark.parametrize("file", OURS, ids=lambda path: str(path.relative_to(UI)))
def test_no_module_makes_markup_or_programs_of_text(file: Path) -> None:
    source = file.read_text()
    for forbidden in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        'style="',
    ):
        assert forbidden not in source
    assert not re.search(r"https?://(?!www\.w3\.org/)", source), "nothing comes from elsewhere"
    assert len(source.splitlines()) <= LINES or file in WORDS
