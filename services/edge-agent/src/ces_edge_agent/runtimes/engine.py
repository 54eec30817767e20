"""The container engine, limited to the containers of one node; its errors become those of the runtime port."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, NotFound, create_api_error_from_http_exception

from ces_edge_agent.ports import RuntimeUnavailable

_TIMEOUT_S = 60
_SHARES = 1024  # of a container that was given none
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OWN_HOSTNAME = re.compile(r"^(?:\S+ ){3}\S*/containers/([0-9a-f]{64})/\S*hostname /etc/hostname ", re.MULTILINE)


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Turn errors of the engine into RuntimeUnavailable; ``what`` begins its message."""
    try:
        yield
    except APIError as error:
        raise RuntimeUnavailable(f"{what}: {explain(error)}") from error
    except (DockerException, requests.RequestException, OSError) as error:
        raise RuntimeUnavailable(f"{what}: the container engine does not answer: {error}") from error


def explain(error: APIError) -> str:
    return str(error.explanation or error)


class Engine:
    """Containers with the labels of one ``cluster`` and ``node``. ``url`` None follows DOCKER_HOST. Blocking; connects
    on first use and reconnects after the engine was down."""

    def __init__(self, url: str | None, cluster: str, node: str) -> None:
        self._url = url
        self.labels = {"ces.cluster": cluster, "ces.node": node}
        self._prefix = f"ces.{cluster}.{node}."
        self._client: Any = None
        self._pids: dict[str, int] = {}

    @property
    def client(self) -> Any:
        """The low-level client. Raises DockerException."""
        if self._client is None:
            arguments = docker.utils.kwargs_from_env() if self._url is None else {"base_url": self._url}
            self._client = docker.APIClient(version="auto", timeout=_TIMEOUT_S, **arguments)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def name(self, key: str) -> str:
        return self._prefix + key

    def list(self, role: str) -> list[dict[str, Any]]:
        """All containers of this node in a role (``sandbox``, ``worker``, ``secrets``), including ended ones."""
        desired = {**self.labels, "ces.role": role}
        filters = {"label": [f"{name}={value}" for name, value in desired.items()]}
        found: list[dict[str, Any]] = self.client.containers(all=True, filters=filters)
        return found

    def find(self, key: str) -> dict[str, Any] | None:
        """The engine's description of a sandbox or worker; None if it does not exist. Raises RuntimeUnavailable if
        another cluster or user has a container of that name."""
        try:
            found: dict[str, Any] = self.client.inspect_container(self.name(key))
        except NotFound:
            return None
        labels = found["Config"]["Labels"] or {}
        if any(labels.get(label) != value for label, value in self.labels.items()):
            raise RuntimeUnavailable(f"container {self.name(key)} belongs to somebody else")
        return found

    def delete(self, container: str, force: bool = False) -> None:
        with contextlib.suppress(NotFound):
            self.client.remove_container(container, v=True, force=force)
        self._pids.pop(container, None)

    @contextmanager
    def feeding(self, container: str) -> Iterator[None]:
        """While this lasts, and this process lives, the container's input stays open. Nothing is sent."""
        stream = self.client.attach_socket(container, {"stdin": 1, "stream": 1})
        try:
            yield
        finally:
            vars(stream).get("_response", stream).close()  # where the library keeps the connection

    def pid(self, container: str) -> int:
        """Process id of a running container (cached); 0 if it has just ended."""
        pid = self._pids.get(container) or int(self.client.inspect_container(container)["State"]["Pid"])
        self._pids[container] = pid
        return pid

    def shares_kernel(self) -> bool:
        """Whether containers run on this machine's kernel, and so on its clocks, not in a virtual machine."""
        return bool(self.client.version()["KernelVersion"] == os.uname().release)

    def filters_calls(self) -> bool:
        """Whether it keeps system calls from containers."""
        return any("seccomp" in option for option in self.client.info().get("SecurityOptions") or [])

    def host_path(self, path: Path) -> str:
        """``path`` as the engine sees it, which differs if this process runs in one of its containers. Raises
        RuntimeUnavailable if the path exists in that container only."""
        own = own_container(Path("/proc/self/mountinfo").read_text())
        if own is None:
            return str(path)
        try:
            mounts = self.client.inspect_container(own)["Mounts"]
        except NotFound:  # our container belongs to another engine, outside this one
            return str(path)
        found = source_of(path, mounts)
        if found is None:
            raise RuntimeUnavailable(f"{path} lies in the agent's own container: mount a volume at CES_STATE_DIR")
        return found

    def limit_cpu(self, container: str, cpu: int, usual_weight: bool = False) -> None:
        """From now on at most ``cpu`` millicores, and with ``usual_weight`` the weight that others have; does nothing
        where there is no such container. The library cannot change what one was made with. Raises APIError."""
        limits = {"NanoCpus": cpu * 1_000_000, **({"CpuShares": _SHARES} if usual_weight else {})}
        url = f"{self.client.base_url}/v{self.client.api_version}/containers/{container}/update"
        answer = self.client.post(url, json=limits, timeout=_TIMEOUT_S)
        if answer.status_code == requests.codes.not_found:
            return
        try:
            answer.raise_for_status()
        except requests.HTTPError as error:
            raise create_api_error_from_http_exception(error) from error

    def has_file(self, container: str, path: str) -> bool:
        """Whether ``path`` exists in a container, running or not."""
        url = f"{self.client.base_url}/v{self.client.api_version}/containers/{container}/archive"
        return bool(self.client.head(url, params={"path": path}, timeout=_TIMEOUT_S).ok)

    def missing_program(self, container: str, config: Mapping[str, Any]) -> str | None:
        """The command's program, if it is not in the container. The engine's own message is less plain."""
        if config["Entrypoint"] or not config["Cmd"]:
            return None
        program = str(config["Cmd"][0])
        variables = dict(entry.partition("=")[::2] for entry in config["Env"] or [])
        folders = variables.get("PATH", _DEFAULT_PATH).split(":")
        candidates = [program] if "/" in program else [f"{folder}/{program}" for folder in folders]
        return None if any(self.has_file(container, path) for path in candidates) else program


def own_container(mountinfo: str) -> str | None:
    """Id of the container that a process with this /proc/self/mountinfo is in: the engine mounts its /etc/hostname."""
    found = _OWN_HOSTNAME.search(mountinfo)
    return found[1] if found else None


def source_of(path: Path, mounts: Sequence[dict[str, Any]]) -> str | None:
    """Host path of a container's ``path``, by the container's mounts; None if it is on none of them."""
    for mount in sorted(mounts, key=lambda mount: len(mount["Destination"]), reverse=True):
        if path.is_relative_to(mount["Destination"]):
            return str(Path(mount["Source"]) / path.relative_to(mount["Destination"])) if mount["Source"] else None
    return None
