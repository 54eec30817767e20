import pytest

from ces_common.exit_codes import signal_name


@pytest.mark.parametrize(
    ("code", "name"),
    [(137, "SIGKILL"), (143, "SIGTERM"), (139, "SIGSEGV"), (1, None), (128, None), (255, None), (-9, None)],
)
def test_a_signal_has_its_name(code: int, name: str | None) -> None:
    assert signal_name(code) == name
