"""Applications on emulated hosts whose wires have delays: what requests take, beside what was reckoned."""
