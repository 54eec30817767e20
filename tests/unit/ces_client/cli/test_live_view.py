"""``--watch``."""

from __future__ import annotations

import json

from ces_command import ces


def test_watching_shows_changes_until_ctrl_c(connected, samples, monkeypatch):
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("ces_client.cli.live_view.time.sleep", pause)
    queued, running = [samples.job("queued")], [samples.job("running")]
    connected.on("GET", "jobs", queued, queued, running)
    lines = ces("get", "jobs", "--watch", "-o", "json").stdout.splitlines()
    assert [json.loads(line)[0]["state"] for line in lines] == ["queued", "running"]
