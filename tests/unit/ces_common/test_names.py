"""Derived names."""

from hypothesis import given
from hypothesis import strategies as st

from ces_common import names


@given(st.text("abcXYZ019_-", min_size=1, max_size=63))
def test_device_names_fit_the_kernel(name: str) -> None:
    for device in (names.link_device(name), names.endpoint_device(name)):
        assert 0 < len(device) <= names.DEVICE_LENGTH
        assert "/" not in device


def test_device_names_differ_where_only_the_end_of_a_long_name_does() -> None:
    assert names.link_device("edge") == "to-edge"
    assert names.link_device("a-very-long-node-name-1") != names.link_device("a-very-long-node-name-2")
    assert names.endpoint_device("01J1") != names.endpoint_device("01J2")
