"""Logs as JSON lines on stderr."""

from __future__ import annotations

import logging
import sys

import structlog

_SECRET = ("token", "secret", "seed", "password", "jwt", "authorization")


def _hide_secrets(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for key in event:
        if any(word in key.lower() for word in _SECRET):
            event[key] = "***"
    return event


def configure_logging(service: str, level: str = "info") -> None:
    """JSON lines on stderr, the standard library's loggers included; values under secret-sounding keys are hidden."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _hide_secrets,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("uvicorn.access", "httpx", "httpcore", "pyroute2", "docker"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    structlog.contextvars.bind_contextvars(service=service)
