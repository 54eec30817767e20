"""What this machine can enforce, found by trying it."""

from __future__ import annotations

import contextlib
import os
import sys

from ces_common.jobfile import JobFile

PROBE = "ces-probe"
SANDBOX_IMAGE = "ces-sandbox"


def why_no_tc() -> str | None:
    """Why network ``tc`` (namespaces and shaping) cannot be had here; None where it can.

    Tries all that it takes, in a namespace that vanishes again.
    """
    if sys.platform != "linux":
        return "it needs Linux"
    if os.geteuid() != 0:
        return "it needs root"
    from pyroute2 import IPRoute, netns
    from pyroute2.netlink.exceptions import NetlinkError

    name = f"{PROBE}-{os.getpid()}"
    try:
        netns.create(name)
    except OSError as error:
        return f"network namespaces cannot be made here ({error.strerror or error})"
    try:
        with IPRoute(netns=name, flags=0) as ip:
            ip.link("add", ifname="probe0", kind="veth", peer={"ifname": "probe1"})
            index = ip.link_lookup(ifname="probe0")[0]
            ip.tc("add", "htb", index, "1:", default=1)
    except (OSError, NetlinkError) as error:
        return f"veth devices or HTB cannot be made here ({error})"
    finally:
        with contextlib.suppress(OSError):
            netns.remove(name)
    return None


def why_no_engine() -> str | None:
    """Why the ``docker`` runtime cannot be had here; None where an engine answers."""
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=5)
        client.ping()
        client.close()
    except DockerException as error:
        return f"no container engine answers: {error}"
    return None


def missing_images(job: JobFile) -> list[str]:
    """The images for a job's workers and their sandboxes that the engine lacks. Raises DockerException without one."""
    import docker
    from docker.errors import ImageNotFound

    client = docker.from_env()
    missing = []
    for name in sorted({SANDBOX_IMAGE, *(group.image for group in job.tasks if group.image)}):
        try:
            client.images.get(name)
        except ImageNotFound:
            missing.append(name)
    client.close()
    return missing
