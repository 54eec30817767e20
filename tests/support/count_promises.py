"""Counts what the tests promise, for each folder: ``python tests/support/count_promises.py [COMMIT ...]``.

Without a commit the working tree is counted. Compare two commits after moving tests or making them faster: no column
may shrink. Only the text of the tests is read, so that any commit can be counted without installing it.

- tests: test functions; cases: with their parameters, as far as lists are written out in the same file
- asserts: ``assert`` statements; raises: ``pytest.raises`` and ``pytest.warns``
- properties, examples: functions with ``@given``, and how many examples these try (100 where nothing is said)
- kills: cases of tests that kill, arm, cut off or wipe a part of a cluster, themselves or by a function of their file
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ("files", "tests", "cases", "asserts", "raises", "properties", "examples", "kills")
FAULTS = {"kill", "kill_worker", "arm", "partition", "cut", "wipe", "send_signal", "terminate"}
EXAMPLES = 100  # hypothesis's default
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class TestFile:
    """One module of tests or test support, as text."""

    tree: ast.Module
    is_test: bool
    values: dict[str, ast.expr] = field(default_factory=dict)  # of names that the module assigns

    def __post_init__(self) -> None:
        for node in self.tree.body:
            if isinstance(node, ast.Assign):
                self.values |= {each.id: node.value for each in node.targets if isinstance(each, ast.Name)}

    @cached_property
    def functions(self) -> dict[str, Function]:
        return {node.name: node for node in ast.walk(self.tree) if isinstance(node, Function)}

    def counts(self) -> Counter[str]:
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        found = Counter(
            files=1,
            asserts=sum(isinstance(node, ast.Assert) for node in ast.walk(self.tree)),
            raises=sum(_name(call.func) in ("raises", "warns") for call in calls),
        )
        for name, function in self.functions.items():
            if any(_name(each) == "given" for each in function.decorator_list):
                found += Counter(properties=1, examples=self._examples(function))
            if self.is_test and name.startswith("test"):
                cases = self._cases(function)
                found += Counter(tests=1, cases=cases, kills=cases * self._does_harm(function))
        return found

    def _cases(self, function: Function) -> int:
        count = 1
        for each in function.decorator_list:
            mark = self.values.get(each.id, each) if isinstance(each, ast.Name) else each
            if isinstance(mark, ast.Call) and _name(mark) == "parametrize" and len(mark.args) > 1:
                count *= self._length(mark.args[1])
        return count

    def _length(self, values: ast.expr) -> int:
        """How many parameters there are; 1 where only running would tell."""
        if isinstance(values, ast.Name):
            values = self.values.get(values.id, values)
        if isinstance(values, ast.List | ast.Tuple | ast.Set):
            return sum(self._length(each.value) if isinstance(each, ast.Starred) else 1 for each in values.elts)
        return len(values.keys) if isinstance(values, ast.Dict) else 1

    def _examples(self, function: Function) -> int:
        for each in function.decorator_list:
            settings = self.values.get(each.id, each) if isinstance(each, ast.Name) else each
            for keyword in settings.keywords if isinstance(settings, ast.Call) else []:
                if keyword.arg == "max_examples" and isinstance(keyword.value, ast.Constant):
                    return int(str(keyword.value.value))
        return EXAMPLES

    def _does_harm(self, function: Function, seen: frozenset[str] = frozenset()) -> bool:
        called = {_name(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
        if called & FAULTS:
            return True
        own = [self.functions[name] for name in called & self.functions.keys() - seen]
        return any(self._does_harm(each, seen | called) for each in own)


def _name(node: ast.expr) -> str:
    """The last part of what is called: ``raises`` of ``pytest.raises(...)``."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def sources(commit: str | None) -> Iterator[tuple[str, str]]:
    """Path below ``tests`` and text of every Python file."""
    if commit is None:
        for path in sorted((ROOT / "tests").rglob("*.py")):
            yield str(path.relative_to(ROOT / "tests")), path.read_text()
        return
    listed = _git("ls-tree", "-r", "--name-only", commit, "--", "tests").splitlines()
    for name in listed:
        if name.endswith(".py"):
            yield name.removeprefix("tests/"), _git("show", f"{commit}:{name}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def count(commit: str | None) -> dict[str, Counter[str]]:
    """The counts of each kind of test; unit tests by package."""
    folders: dict[str, Counter[str]] = {}
    for name, text in sources(commit):
        parts = Path(name).parts[:-1]
        folder = "/".join(parts[: 2 if parts[:1] == ("unit",) else 1]) or "."
        module = TestFile(ast.parse(text), Path(name).name.startswith("test_"))
        folders.setdefault(folder, Counter()).update(module.counts())
    return folders


def main(commits: Sequence[str]) -> None:
    for commit in commits or [None]:
        folders = count(commit)
        print(f"{commit or 'working tree':24}" + "".join(f"{column:>12}" for column in COLUMNS))
        for folder, counts in [*sorted(folders.items()), ("in all", sum(folders.values(), Counter()))]:
            print(f"{folder:24}" + "".join(f"{counts[column]:>12}" for column in COLUMNS))


if __name__ == "__main__":
    main(sys.argv[1:])
