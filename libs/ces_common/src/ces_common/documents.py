"""YAML and JSON that people write. A key given twice is refused: the reader would keep one value and drop the other."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn

import yaml

_MERGE = "tag:yaml.org,2002:merge"  # the key <<
LINES_WITHIN = 16 * 1024  # characters of JSON in which lines are looked for: the reader that knows them takes its time
DEEPEST = 64  # lists and mappings within each other; no file of ours has ten


class DuplicateKey(yaml.MarkedYAMLError):
    """A key given twice in one mapping. ``key``, and ``problem``: a sentence with both lines, where they are known."""

    def __init__(self, key: str, first: yaml.Mark | None = None, second: yaml.Mark | None = None) -> None:
        where = ""
        if first and second:
            lines = sorted({first.line + 1, second.line + 1})
            where = f", on {'line' if len(lines) == 1 else 'lines'} {' and '.join(map(str, lines))}"
        super().__init__(problem=f"the key {key!r} is given twice{where}: keep one of them", problem_mark=second)
        self.key = key


class _Loader(yaml.SafeLoader):
    depth = 0
    aliases = True

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        """While composing, which calls itself for each level, as all later steps do."""
        if not self.aliases and self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="an alias, which is not taken here: write the value", problem_mark=mark)
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


class _NoAliases(_Loader):
    aliases = False


def read_yaml(text: str, *, aliases: bool = True) -> Any:
    """The document, which may be JSON. ``aliases``: a few of them may stand for any number of values, so whoever reads
    what strangers send takes none. Raises yaml.YAMLError, DuplicateKey among them."""
    try:
        return yaml.load(text, _Loader if aliases else _NoAliases)  # noqa: S506
    # Thousands of digits, a thirteenth month, `!!bool foo`: the reader's own code fails in many ways.
    except (ValueError, LookupError, ArithmeticError, AttributeError, TypeError) as error:
        raise yaml.MarkedYAMLError(problem=f"a value cannot be read: {error}") from error


def read_json(text: str | bytes) -> Any:
    """The document. Raises ValueError for what is no JSON, DuplicateKey for a key given twice."""
    repeated: str | None = None

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        if repeated is None and len(found) < len(pairs):
            repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return found

    document = json.loads(text, object_pairs_hook=collect)
    if repeated is not None:
        _refuse_repeated(repeated, text.decode() if isinstance(text, bytes) else text)
    return document


def _refuse_repeated(key: str, text: str) -> NoReturn:
    """JSON is YAML, whose reader knows lines; tabs, which YAML has not, stand only between JSON's values."""
    if len(text) <= LINES_WITHIN:
        try:
            read_yaml(text.replace("\t", " "))
        except DuplicateKey:
            raise
        except yaml.YAMLError:
            pass
    raise DuplicateKey(key)
