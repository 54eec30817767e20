"""Settings as flags: every kind of field there and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from ces_rl.flags import defaults_of, parameters, parse, text_of


@dataclass(frozen=True)
class Every:
    """Of each kind one."""

    count: Annotated[int, Field(ge=1, description="how many")] = 3
    share: float = 0.5
    on: bool = True
    name: str = "x"
    pair: tuple[float, float] = (1.0, 0.5)
    several: tuple[float, ...] = (1.0, 2.0, 4.0)
    maybe: tuple[float, float] | None = None
    odds: dict[str, float] = field(default_factory=lambda: {"tight": 1.0, "scarce": 2.5})
    kinds: tuple[tuple[str, int, int | None], ...] = (("tight", 10, None), ("scarce", 20, 3))


@pytest.mark.parametrize("parameter", parameters(Every, {}, "panel"), ids=lambda each: each.name)
def test_what_is_shown_as_default_is_read_as_it(parameter: Any) -> None:
    from typing import get_type_hints

    hint = get_type_hints(Every, include_extras=True)[parameter.name]
    assert parse(hint, parameter.default) == getattr(Every(), parameter.name)


def test_what_is_given_is_read_and_checked() -> None:
    assert parse(tuple[float, float] | None, "0.7,0.6") == (0.7, 0.6)
    assert parse(tuple[int, int], " 3, 8") == (3, 8)
    assert parse(dict[str, float], "tight=3") == {"tight": 3.0}
    for hint, text in ((tuple[int, int], "3"), (tuple[int, int], "3,x"), (dict[str, float], "tight=x")):
        with pytest.raises(ValidationError):
            parse(hint, text)
    with pytest.raises(ValueError, match="name=number"):
        parse(dict[str, float], "tight")


def test_a_default_of_no_field_is_a_mistake() -> None:
    assert defaults_of(Every, {"count": 5})["count"] == 5
    with pytest.raises(KeyError, match="counts"):
        defaults_of(Every, {"counts": 5})
    assert text_of(None) == "none"
