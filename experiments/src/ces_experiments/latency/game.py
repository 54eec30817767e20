"""iFogSim's VR game on a backbone, as an instance with goals.

Players wear an EEG sensor and look at a display. A ``client`` hears the sensor, a ``calculator`` works out how much the
player concentrates, and the client shows it; one ``coordinator`` joins the states of all players. Work, messages,
devices and the latency of sensor and display are those of the class ``VRGameFog`` of iFogSim (H. Gupta, A. V.
Dastjerdi, S. K. Ghosh, R. Buyya, "iFogSim: A toolkit for modeling and simulation of resource management techniques in
the Internet of Things, edge and fog computing environments", Software: Practice and Experience 47(9), 2017) with a
sensor that sends every 10 ms. What is not from there is drawn or chosen, and said so beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ces_experiments.latency.networks import BACKBONES, Backbone

MIPS = 1000.0
"""Instructions, in millions, that the reference core makes in a ms of the simulator: one core of its phones."""
SENSED, CONCENTRATED, CALCULATED, JOINED = 2000.0, 14.0, 3500.0, 1000.0
"""Millions of instructions for a message of the sensor, of the calculator's answer, of the sensor's data at the
calculator, and of a player's state at the coordinator."""
SMALL, STATE = 500.0, 1000.0
"""Bytes of a message of sensor, calculator and display, and of a state."""
EVENTS, PASSED, STATES = 100.0, 0.9, 10.0
"""Messages a second of the sensor; the share of them that the client passes on; states a second."""
SENSOR_MS, DISPLAY_MS = 6.0, 1.0
DEVICES: dict[str, dict[str, Any]] = {
    "phone": {"cpu": 1.0, "memory": 1000.0, "speed": {"game": 1.0}, "idle_w": 82.44, "peak_w": 87.53},
    "gateway": {"cpu": 1.0, "memory": 4000.0, "speed": {"game": 2.8}, "idle_w": 83.4333, "peak_w": 107.339},
    "cloud": {
        "cpu": 16.0, "memory": 40000.0, "speed": {"game": 2.8}, "idle_w": 16 * 83.25, "peak_w": 16 * 103.0,
    },
}  # fmt: skip
"""Cores, their speed and the watts of iFogSim's devices: 1,000 MIPS, 2,800 and 16 times 2,800."""
CLOUDS, PHONES = 2, 0.3
"""Chosen: so many places have a cloud, and of the others this share a phone and the rest a gateway."""
SLICE = (20.0, 60.0)
"""Chosen: Mbit/s of the slice of each wire that the game may use. SNDlib's own capacities are those of whole backbones,
beside which the game is nothing."""
FASTER = 10.0
"""Chosen: flows may use up to this many times the rate of their messages, so that these arrive sooner."""
LOOP_MS, WORLD_MS = 40.0, 120.0
"""Chosen: deadlines from the sensor to the display, and from the calculator over the coordinator to the display."""
LEAST = 0.97
"""Chosen: the least reliability of all nodes and links in use."""
OBJECTIVE = {"balance": 0.25, "bandwidth": 0.25, "time": 0.3, "energy": 0.2}


def game_instance(network: str, players: int, seed: int) -> dict[str, Any]:
    """The instance; the first player's loop is hard, the other chains count in the objective."""
    backbone, rng = BACKBONES[network], np.random.default_rng([seed, players])
    homes = rng.choice(list(backbone.places), players, replace=players > len(backbone.places)).tolist()
    return {"nodes": _nodes(backbone, rng), "links": _links(backbone, rng), "job": _job(homes)}


def _nodes(backbone: Backbone, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Use of CPU and memory U[0, 50 %], reliability U[0.995, 1]: drawn."""
    clouds = set(rng.choice(len(backbone.places), CLOUDS, replace=False).tolist())
    found = []
    for i, (name, (lat, lon)) in enumerate(backbone.places.items()):
        phone = bool(rng.random() < PHONES)
        device = DEVICES["cloud" if i in clouds else "phone" if phone else "gateway"]
        used = rng.uniform(0.0, 0.5, 2)
        node = {"name": name, **device, "position": {"lat": lat, "lon": lon}, "reliability": rng.uniform(0.995, 1.0)}
        found.append(node | {"cpu_used": device["cpu"] * used[0], "memory_used": device["memory"] * used[1]})
    return found


def _links(backbone: Backbone, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Use U[0, 50 %], 5 to 15 nJ/bit, reliability U[0.999, 1]: drawn, both ways alike but for the use."""
    found = []
    for a, b in backbone.wires:
        wire = {
            "bandwidth": rng.uniform(*SLICE),
            "delay_ms": backbone.delay_ms(a, b),
            "nj_per_bit": rng.uniform(5.0, 15.0),
            "reliability": rng.uniform(0.999, 1.0),
        }
        for src, dst in ((a, b), (b, a)):
            found.append({"src": src, "dst": dst, **wire, "bandwidth_used": wire["bandwidth"] * rng.uniform(0.0, 0.5)})
    return found


def _job(homes: list[str]) -> dict[str, Any]:
    """A client and a calculator for each player, whose sensor and display are at ``homes``, and the coordinator. The
    client is passed twice in a loop, so its work for one passing is the mean of the two."""
    shown = (SENSED + CONCENTRATED) / 2
    tasks = [_task("coordinator", 0.2, 10.0, JOINED, STATES * len(homes))]
    flows, chains = [], []
    for i, home in enumerate(homes):
        client, calculator, user = f"client{i}", f"calculator{i}", f"@{home}"
        tasks += [
            _task(client, 0.3, 10.0, shown, EVENTS * (1 + PASSED)),
            _task(calculator, 0.5, 10.0, CALCULATED, EVENTS * PASSED),
        ]
        flows += [
            _flow(user, client, SMALL, EVENTS),
            _flow(client, calculator, SMALL, EVENTS * PASSED),
            _flow(calculator, client, SMALL, EVENTS * PASSED),
            _flow(client, user, SMALL, EVENTS * PASSED),
            _flow(calculator, "coordinator", STATE, STATES),
            _flow("coordinator", client, STATE, STATES),
        ]
        loop = [[user, client], [client, calculator], [calculator, client], [client, user]]
        chains.append(
            {"name": f"loop{i}", "tasks": [client, calculator, client], "flows": loop, "deadline_ms": LOOP_MS}
            | {"fixed_ms": SENSOR_MS + DISPLAY_MS, "hard": i == 0}
        )
        world = [[calculator, "coordinator"], ["coordinator", client], [client, user]]
        chains.append(
            {"name": f"world{i}", "tasks": ["coordinator", client], "flows": world, "deadline_ms": WORLD_MS}
            | {"fixed_ms": DISPLAY_MS}
        )
    return {
        "name": "vr-game",
        "tasks": tasks,
        "flows": flows,
        "chains": chains,
        "least_reliability": LEAST,
        "objective": OBJECTIVE,
    }


def _task(name: str, cpu: float, memory: float, work: float, rate: float) -> dict[str, Any]:
    """``cpu``: cores, chosen; ``memory``: MB; ``work``: millions of instructions. One thread, as in the simulator."""
    load = {"per_request": work / MIPS, "class": "game", "threads": 1.0}
    return {"name": name, "cpu": cpu, "memory": memory, "work": load, "rate": rate}


def _flow(src: str, dst: str, message: float, rate: float) -> dict[str, Any]:
    low = message * 8e-6 * rate
    return {"src": src, "dst": dst, "min": low, "max": FASTER * low, "message": message}
