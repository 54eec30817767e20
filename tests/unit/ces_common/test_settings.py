"""Settings from the environment."""

import pytest
from pydantic import ValidationError

from ces_common.settings import ServiceSettings


def test_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_NATS_URLS", "nats://a:1, nats://b:2,")
    monkeypatch.setenv("CES_RESYNC_S", "5")
    settings = ServiceSettings()
    assert settings.nats_urls == ["nats://a:1", "nats://b:2"]
    assert settings.resync_s == 5


@pytest.mark.parametrize(
    ("name", "value"), [("CES_HTTP_PORT", "70000"), ("CES_LOG_LEVEL", "loud"), ("CES_RESYNC_S", "0")]
)
def test_impossible_settings_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError, match=name.removeprefix("CES_").lower()):
        ServiceSettings()
