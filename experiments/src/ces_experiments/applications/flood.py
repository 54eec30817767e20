"""A worker that floods: UDP datagrams to the next task of its job, whatever becomes of them. Argument: bit/s.

Standard library only. Its job has no flow, so nothing is reserved for it: it is whoever else uses the wires.
"""

import json
import os
import socket
import sys
import time

PORT = 5303
DATAGRAM = 1342
FRAME = DATAGRAM + 42
AT_ONCE = 40
UDP_SEGMENT = 103  # udp(7): the kernel cuts what is sent at once
CATCH_UP_S = 0.1

peers = sorted(json.loads(os.environ["CES_PEERS"]), key=lambda peer: peer["rank"])
address = peers[(int(os.environ["RANK"]) + 1) % len(peers)]["address"], PORT
pause_s = AT_ONCE * FRAME * 8 / int(sys.argv[1])
data = bytes(AT_ONCE * DATAGRAM)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM)
    due = time.monotonic()
    sent = lost = 0
    while True:
        try:
            sender.sendto(data, address)
            sent += 1
        except OSError as error:  # the queue is full, or nobody listens there
            lost += 1
            last = str(error)
        if (sent + lost) % 500 == 1:
            print(json.dumps({"sent": sent * AT_ONCE, "refused": lost, "why": last if lost else ""}), flush=True)
        due = max(due + pause_s, time.monotonic() - CATCH_UP_S)
        time.sleep(max(0.0, due - time.monotonic()))
