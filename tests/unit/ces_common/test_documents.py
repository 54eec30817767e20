"""Keys given twice in YAML and JSON are refused with both lines."""

from __future__ import annotations

import pytest
import yaml

from ces_common import documents
from ces_common.documents import DuplicateKey, read_json, read_yaml


@pytest.mark.parametrize(
    ("text", "key", "lines"),
    [
        ("a: 1\nb: 2\na: 3", "a", "1 and 3"),
        ("tasks:\n- name: w\n  command: [x]\n  name: v\n", "name", "2 and 4"),
        ('{"a": 1,\n "b": {"c": 1,\n "c": 2}}', "c", "2 and 3"),
        ('{"a": "\\ud83d\\ude00\\/",\n\t"a": 2}', "a", "1 and 2"),
    ],
)
def test_a_key_given_twice_is_named_with_both_lines(text: str, key: str, lines: str) -> None:
    with pytest.raises(DuplicateKey) as refused:
        (read_json if text.startswith("{") else read_yaml)(text)
    assert refused.value.key == key
    assert refused.value.problem == f"the key {key!r} is given twice, on lines {lines}: keep one of them"


def test_twice_on_one_line_names_that_line_once() -> None:
    with pytest.raises(DuplicateKey, match="is given twice, on line 1: keep"):
        read_json('{"a": 1, "a": 2}')


def test_the_yaml_reader_refuses_it_in_json_too() -> None:
    with pytest.raises(DuplicateKey, match="lines 1 and 2"):
        read_yaml('{"a": 1,\n"a": 2}')


def test_what_yaml_cannot_print_hides_no_second_key() -> None:
    with pytest.raises(DuplicateKey, match="the key 'a' is given twice: keep one of them"):
        read_json('{"a": "\x7f", "a": 2}')


def test_a_large_document_is_not_read_again_for_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "read_yaml", lambda _: pytest.fail("it takes seconds"))
    with pytest.raises(DuplicateKey, match="the key 'b' is given twice: keep one of them"):
        read_json(b'{"a": [' + b"1, " * 8000 + b'{"b": 1, "c": 2, "b": 3}]}')


def test_merged_mappings_may_be_overridden() -> None:
    text = "c:\n  d: &b {<<: &a {x: 1}, x: 2}\ne: {<<: *b, x: 3}\nf: {<<: [*a, *b], y: 1}\n"
    assert read_yaml(text) == {"c": {"d": {"x": 2}}, "e": {"x": 3}, "f": {"x": 1, "y": 1}}


def test_equal_keys_of_different_mappings_and_types_pass() -> None:
    assert read_yaml("a: {x: 1}\nb: {x: 2}\n'1': a\n1: b\n") == {"a": {"x": 1}, "b": {"x": 2}, "1": "a", 1: "b"}
    assert read_json(b'{"a": {"x": 1}, "b": {"x": 2}}') == {"a": {"x": 1}, "b": {"x": 2}}


DEEP = [
    "[" * 100_000,
    "[" * 400 + "]" * 400,
    "{a: " * 400 + "1" + "}" * 400,
    "".join(f"{' ' * i}a:\n" for i in range(400)),
]


@pytest.mark.parametrize("text", DEEP, ids=["open", "lists", "mappings", "indented"])
def test_what_lies_too_deep_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match="more than 64 deep within each other") as refused:
        read_yaml(text)
    assert refused.value.problem_mark is not None


@pytest.mark.parametrize("text", ["a: " + "9" * 5000, "a: 2001-13-01"])
def test_a_value_that_no_type_holds_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="a value cannot be read"):
        read_yaml(text)


def test_what_is_neither_is_refused() -> None:
    with pytest.raises(yaml.YAMLError):
        read_yaml("a: [")
    with pytest.raises(ValueError, match="Expecting"):
        read_json("{")
