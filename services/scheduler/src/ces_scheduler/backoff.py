"""How long to leave alone what the manager does not take, though it fits as far as can be seen from here. Pure."""

LONGEST_BACKOFF_S = 30.0


def backoff_s(count: int) -> float:
    """After so many rejections in a row: the first may have met a change, so not at all."""
    return 0.0 if count < 2 else min(LONGEST_BACKOFF_S, 0.25 * 2.0 ** min(count, 16))
