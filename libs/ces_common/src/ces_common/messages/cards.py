"""GPU cards: each is one thing with an identity, which one job holds at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ces_common.fields import Plain
from ces_common.messages.base import Message
from ces_common.messages.bounds import Count
from ces_common.resources import WHOLE

MAX_CARDS = 64  # of one node
CardId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,79}$")]
"""What the driver calls it (``GPU-5f3c...``); ``gpu0`` and so on where nothing is known but how many there are."""
NUMBERED = re.compile(r"gpu(\d+)")


class Card(Message):
    """``memory`` in bytes, 0 where it is not known, as ``model`` is empty then. ``shareable``: whether several jobs may
    have a part of it each, and what keeps them to it: nothing but the count, or the driver's MPS, or HAMi-core."""

    id: CardId
    model: Annotated[str, StringConstraints(max_length=63), Plain] = ""
    memory: Count = 0
    shareable: Literal["no", "counted", "mps", "hami"] = "no"


class CardHolder(Message):
    """What a job holds of a card: thousandths, and bytes of its memory."""

    job: str
    name: str
    share: int
    memory: int


class CardView(Card):
    """A card with what is held of it: thousandths, and bytes of its memory. ``holders``: by whom, as far as whoever
    asks may see their jobs."""

    allocated: int = 0
    memory_allocated: int = 0
    holders: list[CardHolder] = []


Sharing = Literal["counted", "co-operative"]
"""What is true of a share: nothing but the count keeps a program to it, or what a program can evade that means to. CES
knows no way to enforce one."""


def sharing_of(card: Card) -> Sharing:
    return "co-operative" if card.shareable in ("mps", "hami") else "counted"


Cards = Annotated[list[Card], Field(max_length=MAX_CARDS)]


Held = tuple[int, int]
"""Of a card: thousandths of it, and bytes of its memory."""


def held_of(card: Card, share: int, memory: int) -> Held:
    """What a task holds of a card. ``share``: thousandths, 0 for all of it; ``memory``: 0 for the same share."""
    return (share, memory or card.memory * share // WHOLE) if share else (WHOLE, card.memory)


def is_model(card: Card, models: Sequence[str]) -> bool:
    """Whether the card is of one of these models, if any are named. ``T4`` is a word of what the driver calls
    ``Tesla T4``, ``P100`` of ``Tesla P100-PCIE-16GB``."""
    words = {card.model.casefold(), *re.split(r"[\s-]+", card.model.casefold())}
    return not models or any(model.casefold() in words for model in models)


def cards_of(count: int, known: Sequence[Card] = ()) -> list[Card]:
    """``count`` cards: the known ones, then cards of which only a number is known: their place in the list, or the
    lowest free number where a known card has that one."""
    found = list(known[:count])
    used = {card.id for card in found}
    for place in range(len(found), count):
        numbers = (f"gpu{number}" for number in (place, *range(count + 1)))
        found.append(Card(id=next(each for each in numbers if each not in used)))
        used.add(found[-1].id)
    return found
