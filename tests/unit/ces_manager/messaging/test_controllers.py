"""Every manager hears the controllers for itself."""

from __future__ import annotations

from memory_bus import MemoryBroker, MemoryBus
from waiting import until

from ces_common.sign_of_life import SignOfLife
from ces_manager.messaging.controllers import hear_controllers
from ces_manager.nodes.failure_detector import FailureDetector


async def test_two_managers_hear_the_same_controller(broker: MemoryBroker, bus: MemoryBus) -> None:
    detectors = [FailureDetector(lambda: 7.0) for _ in range(2)]
    for detector in detectors:
        manager = MemoryBus(broker)
        await manager.connect()
        await hear_controllers(manager, detector)
    assert [detector.controller("network-ctl").heard for detector in detectors] == [None, None]
    await bus.publish("ces.v1.rpc.manager.alive", b"nonsense")  # and is not irritated
    await SignOfLife(bus, "network-ctl").end()
    await until(lambda: all(detector.controller("network-ctl").heard == 7.0 for detector in detectors))
    assert detectors[0].controller("compute-ctl").heard is None
