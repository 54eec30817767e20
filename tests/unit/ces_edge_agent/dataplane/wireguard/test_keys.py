"""How one key of encrypted links replaces the other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ces_edge_agent.dataplane.wireguard.keys import (
    ALIVE_S,
    QUIET_S,
    RETRY_S,
    SETTLE_S,
    TRIAL_S,
    KeyFile,
    KeyRotation,
    Keys,
    new_key,
    public_of,
)

NOW = 1_800_000_000.0
LIFE_S = 1000.0
KEYS = Keys(new_key(), NOW)
THERE = {"n2": NOW + LIFE_S - QUIET_S, "n3": NOW + LIFE_S - QUIET_S}


def announced() -> KeyRotation:
    """Its time is over, and it has made the next key."""
    rotation = KeyRotation(KEYS, LIFE_S)
    rotation.look(NOW + LIFE_S, [], {})
    assert rotation.keys.next
    return rotation


def on_trial() -> tuple[KeyRotation, float]:
    rotation = announced()
    begun = NOW + LIFE_S + SETTLE_S
    for now in (NOW + LIFE_S, begun):
        rotation.look(now, rotation.keys.public, THERE)
    assert rotation.on_trial
    return rotation, begun


def test_public_keys_are_those_of_the_curve() -> None:
    """RFC 7748, 6.1."""
    alice = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo="
    assert public_of(alice) == "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
    for wrong in ("", "AAAA", "no key"):
        with pytest.raises(ValueError, match=r"."):
            public_of(wrong)


def test_a_key_stays_for_its_life_or_until_somebody_asks() -> None:
    rotation = KeyRotation(KEYS, LIFE_S)
    rotation.look(NOW + LIFE_S - 1, KEYS.public, {})
    assert rotation.keys == KEYS
    rotation.ask()
    rotation.look(NOW + 1, KEYS.public, {})
    assert (rotation.keys.current, len(rotation.keys.public)) == (KEYS.current, 2)
    assert rotation.in_use == KEYS.current


def test_the_next_key_is_not_used_before_the_neighbours_are_told() -> None:
    rotation = announced()
    for now in (NOW + LIFE_S + SETTLE_S, NOW + 2 * LIFE_S):
        rotation.look(now, KEYS.public, THERE)
        assert rotation.in_use == KEYS.current


def test_it_is_not_tried_while_a_neighbour_could_not_shake_hands_again() -> None:
    rotation = announced()
    begun = NOW + LIFE_S + SETTLE_S
    for now in (NOW + LIFE_S, begun, begun + QUIET_S - 1):
        rotation.look(now, rotation.keys.public, THERE | {"n2": begun - 0.5})
        assert not rotation.on_trial
    rotation.look(begun + QUIET_S, rotation.keys.public, THERE | {"n2": begun - 0.5})
    assert rotation.on_trial


def test_it_replaces_the_other_once_all_who_were_there_shook_hands_by_it() -> None:
    rotation, begun = on_trial()
    following = rotation.keys.next
    assert rotation.in_use == following
    rotation.look(begun + 1, rotation.keys.public, {"n2": begun + 0.5, "n3": begun - 1})
    assert rotation.on_trial
    rotation.look(begun + 2, rotation.keys.public, {"n2": begun + 0.5, "n3": begun + 1.5})
    assert rotation.keys == Keys(following, begun + 2)
    assert (rotation.in_use, rotation.on_trial) == (following, False)


def test_who_was_not_there_is_not_waited_for() -> None:
    rotation = announced()
    begun = NOW + LIFE_S + SETTLE_S
    shaken = {"n2": begun - QUIET_S, "n3": begun - ALIVE_S}
    for now in (NOW + LIFE_S, begun):
        rotation.look(now, rotation.keys.public, shaken)
    rotation.look(begun + 1, rotation.keys.public, shaken | {"n2": begun + 1})
    assert not rotation.keys.next


def test_it_goes_back_where_a_neighbour_does_not_follow_and_tries_again_later() -> None:
    rotation, begun = on_trial()
    keys = rotation.keys
    behind = {"n2": begun + 0.5, "n3": begun - 1}
    rotation.look(begun + TRIAL_S, keys.public, behind)
    assert (rotation.in_use, rotation.keys) == (KEYS.current, keys)
    rotation.look(begun + TRIAL_S + RETRY_S - 1, keys.public, behind)
    assert not rotation.on_trial
    rotation.ask()
    rotation.look(begun + TRIAL_S + 1, keys.public, behind)
    assert rotation.on_trial, "whoever asks does not wait for the next try"


def test_after_a_restart_the_next_key_is_the_same_and_not_in_use() -> None:
    rotation, begun = on_trial()
    again = KeyRotation(rotation.keys, LIFE_S)
    again.look(begun, [], {})
    assert (again.keys, again.in_use) == (rotation.keys, KEYS.current)


def test_the_file_is_for_this_user_alone_and_made_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keys = KeyFile(path).load(NOW)
    assert path.stat().st_mode & 0o777 == 0o600
    assert KeyFile(path).load(NOW + 5) == keys
    KeyFile(path).save(replace(keys, next=new_key()))
    assert len(KeyFile(path).load(NOW).public) == 2


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"current": "AAAA", "made_at": 0, "next": ""})])
def test_a_file_that_somebody_else_wrote_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"keys.json holds no keys: delete it"):
        KeyFile(path).load(NOW)
