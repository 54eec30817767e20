"""Every setting of every service, from the classes that read them."""

from __future__ import annotations

from pydantic.fields import FieldInfo

from ces_common.settings import ServiceSettings
from ces_edge_agent.settings import AgentSettings
from ces_federation.settings import FederationSettings
from ces_manager.settings import ManagerSettings
from ces_network_ctl.__main__ import NetworkSettings
from ces_scheduler.__main__ import SchedulerSettings
from generator.markdown import code, default_text, quantity, table, type_text
from generator.words import SETTINGS

SERVICES: dict[str, type[ServiceSettings]] = {
    "manager": ManagerSettings,
    "scheduler": SchedulerSettings,
    "network-ctl": NetworkSettings,
    "federation": FederationSettings,
    "edge-agent": AgentSettings,
}


def variable(name: str) -> str:
    return f"CES_{name.upper()}"


def variables() -> set[str]:
    """Every variable that some service reads."""
    classes = (ServiceSettings, *SERVICES.values())
    return {variable(name) for each in classes for name in each.model_fields}


def tables() -> str:
    """One table of what all services have in common, one for each service with more. Raises KeyError for a setting
    that ``words.py`` does not explain."""
    common = ServiceSettings.model_fields
    parts = ["## Every service\n", _table(common)]
    for service, settings in SERVICES.items():
        own = {
            name: field
            for name, field in settings.model_fields.items()
            if name not in common or default_text(field) != default_text(common[name])
        }
        parts += [f"\n## {service}\n", _table(own)]
    return "\n".join(parts)


def unexplained() -> list[str]:
    """Settings without words, and words without a setting."""
    return sorted(variables() ^ SETTINGS.keys())


def _table(fields: dict[str, FieldInfo]) -> str:
    rows = [
        (code(variable(name)), _type(field), default_text(field), SETTINGS[variable(name)])
        for name, field in fields.items()
    ]
    return table(("variable", "type", "default", "meaning"), rows)


def _type(field: FieldInfo) -> str:
    text = quantity(field) or type_text(field.annotation)
    return text.replace("list of text", "list").replace("list of path", "list").replace("text → text", "key=value list")
