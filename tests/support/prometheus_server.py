"""A Prometheus of a test's own, with the rules that are shipped, and the linter of metrics."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml
from expressions import MONITORING
from waiting import wait_for

from ces_testbed.spec import LOCALHOST, free_port


def lint(text: str) -> str:
    """What Prometheus's own linter says against metrics as they are told; empty where that is nothing."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else done.stdout + done.stderr


class PrometheusServer:
    def __init__(self, port: int) -> None:
        self._http = httpx.Client(base_url=f"http://{LOCALHOST}:{port}", timeout=10, trust_env=False)

    def answers(self) -> bool:
        try:
            return self._http.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression gives now. Fails where it cannot be worked out."""
        answer = self._http.get("/api/v1/query", params={"query": expression}).json()
        assert answer["status"] == "success", (expression, answer)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def targets(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._http.get("/api/v1/targets").json()["data"]["activeTargets"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        groups = self._http.get("/api/v1/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def close(self) -> None:
        self._http.close()


def shipped_config(jobs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The configuration that is shipped, asking every second. ``jobs``: what is other in each scrape job; jobs that are
    not named are left out."""
    config: dict[str, Any] = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(MONITORING / file) for file in config["rule_files"]]
    config["scrape_configs"] = [
        job | jobs[job["job_name"]] for job in config["scrape_configs"] if job["job_name"] in jobs
    ]
    return config


@contextmanager
def running_prometheus(folder: Path, config: Mapping[str, Any]) -> Iterator[PrometheusServer]:
    port, file = free_port(LOCALHOST, set()), folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(dict(config)))
    command: Sequence[str] = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address={LOCALHOST}:{port}",
    ]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    server = PrometheusServer(port)
    try:
        wait_for(server.answers, "Prometheus answers")
        yield server
    finally:
        server.close()
        process.terminate()
        process.wait(timeout=30)
