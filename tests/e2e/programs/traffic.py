"""A worker that fills its flows and measures what arrives. Standard library only, one file (see recorded.py).

Arguments: seconds to send, then a mode. ``flows``: fill every flow that starts here, and make new connections along it
meanwhile. ``flood``: send to all peers as fast as a few cores allow, without any reservation: TCP and UDP. All modes
listen, count what arrives by TCP and UDP, and print it as JSON lines with the time of CLOCK_BOOTTIME.
"""

import json
import os
import socket
import sys
import threading
import time
from collections import Counter

ADDRESS, PORT, TASK = os.environ["CES_ADDRESS"], int(os.environ["CES_PORT"]), os.environ["CES_TASK"]
PEERS = {peer["task"]: peer for peer in json.loads(os.environ["CES_PEERS"])}
FLOWS = [flow["dst"] for flow in json.loads(os.environ["CES_FLOWS"]) if flow["src"] == TASK]
SEND_S, MODE = float(sys.argv[1]), sys.argv[2]
CHUNK = bytes(16384)
DATAGRAM = bytes(1400)
FLOOD_PACKETS_S = 15_000  # about 170 Mbit/s: more than any link of these tests carries
TICK_S = 0.25

received: Counter[str] = Counter()
printing = threading.Lock()


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def say(**what: object) -> None:
    line = json.dumps({"t": now(), "task": TASK, **what}) + "\n"
    with printing:
        print(line, end="", flush=True)  # in one piece: whatever else is said comes before or after it


def serve_tcp(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        threading.Thread(target=attend, args=(connection,), daemon=True).start()


def attend(connection: socket.socket) -> None:
    name = connection.recv(64, socket.MSG_WAITALL).decode().strip()
    if name == "ping":
        connection.sendall(b"pong")
        connection.close()
        return
    while data := connection.recv(65536):
        received[f"tcp {name}"] += len(data)


def serve_udp(server: socket.socket) -> None:
    while True:
        data, sender = server.recvfrom(65536)
        received[f"udp {sender[0]}"] += len(data)


def connect(peer: str) -> socket.socket:
    while True:
        try:
            return socket.create_connection((PEERS[peer]["address"], PEERS[peer]["port"]), timeout=10)
        except OSError:
            time.sleep(0.1)


def fill(peer: str, until: float) -> None:
    connection = connect(peer)
    connection.sendall(TASK.ljust(64).encode())
    while now() < until:
        try:
            connection.sendall(CHUNK)
        except TimeoutError:
            say(stuck=peer)
    connection.close()


def knock(peer: str, until: float) -> None:
    connect(peer).close()
    while now() < until:
        began = now()
        try:
            with socket.create_connection((PEERS[peer]["address"], PEERS[peer]["port"]), timeout=10) as fresh:
                fresh.sendall(b"ping".ljust(64))
                answer = fresh.recv(4, socket.MSG_WAITALL)
            say(fresh=peer, ok=answer == b"pong", seconds=now() - began)
        except OSError as error:
            say(fresh=peer, ok=False, error=str(error))
        time.sleep(0.2)


def flood(peer: str, until: float) -> None:
    target = (PEERS[peer]["address"], PEERS[peer]["port"])
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    burst = FLOOD_PACKETS_S // 100
    while now() < until:
        began = now()
        for _ in range(burst):
            try:
                sender.sendto(DATAGRAM, target)
            except OSError:
                break  # its own queue is full
        time.sleep(max(0.0, 0.01 - (now() - began)))


def main() -> None:
    tcp = socket.create_server((ADDRESS, PORT), backlog=64)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((ADDRESS, PORT))
    threading.Thread(target=serve_tcp, args=(tcp,), daemon=True).start()
    threading.Thread(target=serve_udp, args=(udp,), daemon=True).start()
    until = now() + SEND_S
    jobs = [(fill, peer) for peer in FLOWS] + [(knock, peer) for peer in FLOWS]
    if MODE == "flood":
        others = [peer for peer in PEERS if peer != TASK]
        jobs = [(fill, peer) for peer in others] + [(flood, peer) for peer in others]
    senders = [threading.Thread(target=job, args=(peer, until), daemon=True) for job, peer in jobs]
    for sender in senders:
        sender.start()
    while now() < until:
        time.sleep(TICK_S)
        say(received=dict(received))
    say(done=True)


main()
os._exit(0)
