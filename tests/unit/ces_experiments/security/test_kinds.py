"""Every message that an agent may send is fuzzed."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
from pydantic import ValidationError

from ces_common import subjects
from ces_common.natsauth.permissions import AGENT, PERMISSIONS
from ces_experiments.security.kinds import KINDS, SAID, Kind
from ces_experiments.security.mutations import LITERALS, variants

MESSAGES = Path(__file__).parents[4] / "docs" / "reference" / "messages.md"


def documented() -> set[tuple[str, str]]:
    """Subject and model of everything that an agent says, of the generated reference."""
    text, found = MESSAGES.read_text(), set()
    for line in text.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        models = [re.sub(r"\[(\w+)\].*", r"\1", cell) for cell in cells]
        if cells[0].startswith(f"{subjects.PREFIX}.agent."):
            found.add((cells[0], models[2]))
        elif len(cells) == 5 and cells[1] == "agent":
            found.add((cells[0], models[3]))
        elif len(cells) == 5 and cells[2] == "agent":
            found.add((cells[0], models[4]))
    return found


def test_no_message_of_an_agents_is_left_out() -> None:
    fuzzed = {(kind.at.format("<node>"), kind.model.__name__) for kind in KINDS if kind.model is not None}
    assert fuzzed == documented()


def test_no_subject_on_which_an_agent_may_publish_is_left_out() -> None:
    patterns = [pattern.replace("{{name()}}", "n") for pattern in PERMISSIONS[AGENT].publish]
    said = [kind.subject("n") for kind in SAID]
    assert [pattern for pattern in patterns if not any(subjects.matches(pattern, subject) for subject in said)] == []
    assert [subject for subject in said if not any(subjects.matches(pattern, subject) for pattern in patterns)] == []
    assert {subject.rpartition(".")[2] for subject in said if ".agent." in subject} == set(subjects.REPORT_KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_it_begins_from_is_good_and_nothing_but_a_refusal_comes_of_the_rest(kind: Kind) -> None:
    if kind.model is None:
        return
    assert kind.model.model_validate(kind.sample("n")).model_dump(mode="json", exclude_unset=True) == kind.sample("n")
    for variant in islice(variants(kind.sample("n"), ["m"], kind.name), 500):
        with suppress(ValidationError):
            kind.model.model_validate_json(variant.payload)


def test_the_same_seed_gives_the_same_ones_and_all_that_there_is() -> None:
    sample = KINDS[0].sample("n")
    first, again, other = (list(islice(variants(sample, ["m"], seed), 2000)) for seed in ("1", "1", "2"))
    assert first == again
    assert first != other
    told = {variant.how for variant in first}
    assert set(LITERALS) < told
    assert {"cut short", "random bytes", "what expands to 64 MiB", "odd headers", "a reply to elsewhere"} < told
