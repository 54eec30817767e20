"""Text from elsewhere (what workers print, reasons, labels, names), made fit for a terminal: what would steer it is
shown in place of being obeyed."""

from __future__ import annotations

import re
from itertools import accumulate

from rich.text import Span, Text

# C0 but tab and newline, DEL, C1; marks, separators and overrides that reorder a line; halves of a character.
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    r"""The text with every character that steers a terminal as its escape: ``\x1b``, ``\u202e``."""
    return _STEERS.sub(lambda found: _escape(found[0]), text)


def plain_json(document: str) -> str:
    """The same for a JSON document, whose meaning stays: JSON itself escapes only some of them."""
    return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def plain_text(text: Text) -> Text:
    """The same for styled text, with the styles that it has."""
    if _STEERS.search(text.plain) is None:
        return text
    starts = [0, *accumulate(len(plain(character)) for character in text.plain)]
    shown = text.blank_copy(plain(text.plain))
    shown.spans = [
        Span(starts[span.start], starts[min(span.end, len(text))], span.style)
        for span in text.spans
        if span.start < len(text)
    ]
    return shown


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
