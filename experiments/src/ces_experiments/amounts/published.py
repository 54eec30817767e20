"""What TapFinger's public runs came to: the mean slots from a task's arrival to its end, of one run each.

From the results in github.com/nooblyh/TapFinger at 5fd9e3b, averaged; to compare with.
"""

from __future__ import annotations

PUBLISHED_JCT = {
    "hetero_6": {"TapFinger": 4.8698, "Optimus": 8.125, "Tiresias": 10.7917, "Random": 23.5729, "Min": 33.4557},
    "synthetic": {"TapFinger": 6.4167, "Optimus": 8.5625, "Tiresias": 14.6615, "Random": 12.8385, "Min": 12.7448},
    "synthetic_6": {"TapFinger": 7.3125, "Optimus": 9.2031, "Tiresias": 15.0469, "Random": 13.9896, "Min": 15.2005},
}
"""Setting -> scheduler -> slots."""
