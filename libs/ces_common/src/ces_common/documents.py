"""YAML and JSON that people write. A key given twice is refused: the reader would keep one value and drop the other."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import yaml

_MERGE = "tag:yaml.org,2002:merge"  # the key <<
DEEPEST = 64  # lists and mappings within each other; no file of ours has ten


class DuplicateKey(yaml.MarkedYAMLError):
    """A key given twice in one mapping. ``key``, and ``problem``: a sentence with both lines."""

    def __init__(self, key: str, first: yaml.Mark, second: yaml.Mark) -> None:
        problem = f"the key {key!r} is given twice, on lines {first.line + 1} and {second.line + 1}: keep one of them"
        super().__init__(problem=problem, problem_mark=second)
        self.key = key


class _Loader(yaml.SafeLoader):
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        """While composing, which calls itself for each level, as all later steps do."""
        self.depth += 1
        if self.depth > DEEPEST:
            problem = f"lists and mappings lie more than {DEEPEST} deep within each other"
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """While composing, not while constructing: there merged mappings bring keys that may be overridden."""
        node = super().compose_mapping_node(anchor)
        first: dict[tuple[str, str], yaml.Mark] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                known = first.setdefault((key.tag, key.value), key.start_mark)
                if known is not key.start_mark:
                    raise DuplicateKey(key.value, known, key.start_mark)
        return node


def read_yaml(text: str) -> Any:
    """The document, which may be JSON. Raises yaml.YAMLError, DuplicateKey among them."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506
    except ValueError as error:  # thousands of digits, a thirteenth month
        raise yaml.MarkedYAMLError(problem=f"a value cannot be read: {error}") from error


def read_json(text: str | bytes) -> Any:
    """The document. Raises ValueError for what is no JSON, DuplicateKey for a key given twice."""
    repeated = False

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) < len(pairs)
        return found

    document = json.loads(text, object_pairs_hook=collect)
    if repeated:
        _refuse_repeated(text.decode() if isinstance(text, bytes) else text)
    return document


def _refuse_repeated(text: str) -> NoReturn:
    """JSON is YAML, whose reader knows lines; tabs, which YAML has not, stand only between JSON's values."""
    try:
        read_yaml(text.replace("\t", " "))
    except DuplicateKey:
        raise
    except yaml.YAMLError:
        pass
    raise ValueError("a key is given twice: keep one of them")
