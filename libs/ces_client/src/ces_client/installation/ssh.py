"""Connections to a device by the OpenSSH client of this machine, with its configuration, keys and agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ces_client.errors import bad_field
from ces_client.installation.device_program import COMMAND, program
from ces_client.installation.faults import REMEDIES, Fault, ssh_fault
from ces_client.installation.host_keys import HostKey, read_keys
from ces_client.installation.wheels import SentFile

CONNECT_S = 10
FACTS_S = 90.0
WORK_S = 900.0
LONGEST_LINE = 1 << 16  # bytes
_OPTIONS = (
    f"ConnectTimeout={CONNECT_S}",
    "ServerAliveInterval=15",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "ForwardAgent=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "LogLevel=ERROR",
)
_NO_LOGIN = ("-o", "PreferredAuthentications=none", "-o", "BatchMode=yes")


class StepFailed(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.said)
        self.fault = fault


def checked_destination(text: str, option: str) -> str:
    """Raises BadInput for what ssh would take for something else."""
    if not text or text.startswith("-") or not text.isprintable() or any(c.isspace() for c in text) or len(text) > 255:
        raise bad_field(f"{text!r} is no destination", option, "ssh could not go there", "write USER@HOST")
    return text


class Ssh:
    """Close it: it keeps the one host key that counts, once ``pin`` has said which, in a file of its own."""

    def __init__(self, target: str, jump: str | None = None) -> None:
        self.target = checked_destination(target, "USER@HOST")
        self._jump = checked_destination(jump, "--jump") if jump is not None else None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def try_host_key(self) -> Fault | None:
        """Whether the user's known hosts have the device's key; what is wrong where they do not, or nobody answers."""
        status, said = self._call([*_NO_LOGIN], "true")
        found = ssh_fault("host key", status, said)
        return None if status == 0 or found.name == "login" else found

    def offered_key(self) -> HostKey:
        """The key that the device shows now, whoever it is. Raises StepFailed."""
        with tempfile.TemporaryDirectory(prefix="ces-ssh-") as folder:
            file = Path(folder, "known_hosts")
            options = ["-o", "StrictHostKeyChecking=accept-new", *_only(file), *_NO_LOGIN]
            status, said = self._call(options, "true")
            keys = read_keys(file.read_text()) if file.exists() else []
        if not keys:
            raise StepFailed(ssh_fault("host key", status, said))
        return keys[-1]

    def pin(self, key: HostKey) -> None:
        """Take this key from the device from now on, and no other."""
        self.close()
        self._folder = tempfile.TemporaryDirectory(prefix="ces-ssh-")
        self._known(self._folder).write_text(key.line + "\n")

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _known(self, folder: tempfile.TemporaryDirectory[str]) -> Path:
        return Path(folder.name, "known_hosts")

    def remember(self, key: HostKey) -> Path | None:
        """Add the key to the user's known hosts, as ssh itself does; None where the user keeps none. Raises OSError."""
        name = next(iter(self._known_hosts("user")), "~/.ssh/known_hosts")
        if name == "none":
            return None
        path = Path(name).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
            ended = file.read(1) in (b"", b"\n")  # a last line without an end would be one with the key's
            file.write((b"" if ended else b"\n") + key.line.encode() + b"\n")
        return path

    def names_of(self, key: HostKey) -> list[str]:
        """By which known hosts, the user's and the machine's, have this key: of this device, or of another one."""
        names: list[str] = []
        for file in (*self._known_hosts("user"), *self._known_hosts("global")):
            with suppress(OSError):
                for known in read_keys(Path(file).expanduser().read_text(errors="replace")):
                    if known.fingerprint == key.fingerprint:
                        names += known.names
        return list(dict.fromkeys(names))

    def _known_hosts(self, whose: str) -> list[str]:
        """``whose``: user or global."""
        done = subprocess.run(["ssh", "-G", "--", self.target], capture_output=True, text=True, check=False)
        start = f"{whose}knownhostsfile "
        return next((line.split()[1:] for line in done.stdout.splitlines() if line.startswith(start)), [])

    def facts(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Raises StepFailed."""
        return self._order("preflight", dict(order, do="facts"), limit_s=FACTS_S)

    def log(self, since: float) -> list[str]:
        """The last lines of the agent's log; empty where they cannot be had."""
        with suppress(StepFailed):
            lines = self._order("log", {"do": "log", "since": since}, limit_s=FACTS_S).get("log")
            if isinstance(lines, list):
                return [str(line)[:500] for line in lines[:20]]
        return []

    def install(
        self,
        order: Mapping[str, Any],
        sent: Sequence[SentFile],
        token: Callable[[], str],
        on_step: Callable[[str], None],
    ) -> dict[str, Any]:
        """``token``: makes one, once all else is in place. Raises StepFailed, and what ``token`` raises."""
        files = [{"name": each.name, "size": each.size, "sha256": each.sha256} for each in sent]
        return self._order("files", dict(order, do="install", files=files), sent, token, on_step)

    def remove(self, order: Mapping[str, Any], on_step: Callable[[str], None]) -> dict[str, Any]:
        """Raises StepFailed."""
        return self._order("stop", dict(order, do="remove"), on_step=on_step)

    def _command(self, options: Sequence[str], remote: str) -> list[str]:
        """Options that come first count."""
        batch = [] if sys.stdin.isatty() else ["-o", "BatchMode=yes"]  # nobody is there to type a password
        rest = [word for option in _OPTIONS for word in ("-o", option)]
        known = _only(self._known(self._folder)) if self._folder is not None else []
        jump = ["-J", self._jump] if self._jump is not None else []
        return ["ssh", "-T", *options, *known, *batch, *rest, *jump, "--", self.target, remote]

    def _call(self, options: Sequence[str], remote: str) -> tuple[int, str]:
        """Status and standard error. Raises StepFailed."""
        try:
            done = subprocess.run(
                self._command(options, remote),
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=FACTS_S,
                check=False,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise _no_ssh("host key") from error
        except subprocess.TimeoutExpired:
            return 255, f"ssh: connect to host: timed out after {FACTS_S:g} s"
        return done.returncode, done.stderr

    def _order(
        self,
        step: str,
        order: Mapping[str, Any],
        sent: Sequence[SentFile] = (),
        token: Callable[[], str] | None = None,
        on_step: Callable[[str], None] = lambda _: None,
        limit_s: float = WORK_S,
    ) -> dict[str, Any]:
        """Have the device obey; returns what it says at the end. Raises StepFailed, and what ``token`` raises."""
        with tempfile.TemporaryFile() as errors, self._running(step, errors, limit_s) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):  # what it had against it, it says
                _send(process.stdin, order, sent)
            for told in _told(process.stdout):
                if "step" in told:
                    step = str(told["step"])[:40]
                    on_step(step)
                elif "want" in told and token is not None:
                    made, token = token().encode(), None  # a device that asks again gets no other one
                    with suppress(BrokenPipeError):
                        process.stdin.write(made + b"\n")
                        process.stdin.flush()
                elif isinstance(told.get("done"), dict):
                    return dict(told["done"])
                elif "fault" in told:
                    raise StepFailed(_fault(step, told))
            process.stdin.close()
            status = process.wait()
            errors.seek(0)
            raise StepFailed(ssh_fault(step, status, errors.read(1 << 16).decode(errors="replace")))

    @contextmanager
    def _running(self, step: str, errors: IO[bytes], limit_s: float) -> Iterator[subprocess.Popen[bytes]]:
        try:
            process = subprocess.Popen(
                self._command([], COMMAND), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        except FileNotFoundError as error:
            raise _no_ssh(step) from error
        timer = threading.Timer(limit_s, process.kill)
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.close()
            try:
                process.wait(timeout=CONNECT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _only(file: Path) -> list[str]:
    return ["-o", f"UserKnownHostsFile={file}", "-o", "GlobalKnownHostsFile=/dev/null", "-o", "CheckHostIP=no"]


def _no_ssh(step: str) -> StepFailed:
    return StepFailed(Fault(step, "no-ssh", "ssh is not installed on this machine"))


def _send(stream: IO[bytes], order: Mapping[str, Any], sent: Sequence[SentFile]) -> None:
    source = program()
    stream.write(b"%d\n" % len(source) + source + json.dumps(order).encode() + b"\n")
    for each in sent:
        with each.path.open("rb") as file:
            while part := file.read(1 << 20):
                stream.write(part)
    stream.flush()


def _told(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    """What the device says; lines that are not its program's are passed over."""
    while line := stream.readline(LONGEST_LINE):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _fault(step: str, told: Mapping[str, Any]) -> Fault:
    name, log = str(told["fault"]), told.get("log")
    lines = [str(line)[:500] for line in log[:20]] if isinstance(log, list) else []
    return Fault(step, name if name in REMEDIES else "device", str(told.get("said", ""))[:500], lines)
