"""Reads a secret, and says only whether it is the right one: arguments are the digests that each incarnation expects.
SIGUSR1 has it look again and succeed, SIGUSR2 has it fail."""

import hashlib
import os
import signal
import sys


def digest():
    with open(os.path.join(os.environ["CES_SECRETS_DIR"], "token"), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


signals = {signal.SIGUSR1, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
incarnation = int(os.environ["CES_INCARNATION"])
expected = sys.argv[incarnation]
if digest() != expected:
    sys.exit(9)
print("reads", incarnation, flush=True)
if signal.sigwait(signals) == signal.SIGUSR2:
    sys.exit(3)
sys.exit(0 if digest() == expected else 9)
