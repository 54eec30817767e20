"""What a task asks of its node, as a job file says it: amounts, GPU cards or a share of one, and constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Final, Literal

from pydantic import (
    Field,
    PlainValidator,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
    field_serializer,
    field_validator,
)

from ces_common.field_errors import plain_problem
from ces_common.fields import ARCH, MAX_LABELS, Document, Label, Name
from ces_common.quantities import Cpu, Memory

WHOLE: Final = 1000
"""Thousandths of a card."""
STEP: Final = 10
"""In which shares are asked for."""
MAX_GPUS: Final = 64
MAX_MODELS: Final = 16
_SHARES = "^([1-9][0-9]?0|1000)m$"
_REMEDY = "ask for whole cards (gpu: 1), or for one share of one card (gpu: 500m)"


def gpus_of(whole: int, share: int) -> int | float:
    """Whole cards and thousandths of others as one number of GPUs; an integer where nobody has a share."""
    return whole + share / WHOLE if share else whole


def parse_share(value: object) -> int:
    """Thousandths of a card, of ``500m``. Raises ValueError."""
    text = value.strip() if isinstance(value, str) else ""
    if not text.endswith("m") or not text[:-1].isdigit():
        raise ValueError(f"{value!r} is no share of a card: write 500m, say, in steps of {STEP}m")
    share = int(text[:-1])
    if share > WHOLE:
        raise ValueError(f"{text} is more than one card, and a share is of one: {_REMEDY}")
    if not share or share % STEP:
        raise ValueError(f"{text} is not in steps of {STEP}m, from {STEP}m to {WHOLE}m")
    return share


class GpuShare(Document):
    """A share of one card. ``memory`` in bytes; None: of the card's, the same share."""

    share: Annotated[int, PlainValidator(parse_share), WithJsonSchema({"type": "string", "pattern": _SHARES})]
    memory: Memory | None = None

    @field_validator("memory")
    @classmethod
    def _some(cls, value: int | None) -> int | None:
        if value is not None and value <= 0:
            raise ValueError("must be more than zero; leave it out for the same share of the card's memory")
        return value

    @field_serializer("share")
    def _as_written(self, share: int) -> str:
        return f"{share}m"


_COUNT: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=0, le=MAX_GPUS)])
_SHARE: TypeAdapter[GpuShare] = TypeAdapter(GpuShare)


def _gpu(value: object, _: object) -> int | GpuShare:
    """By itself, so that what is wrong is said of the field and not of each kind of value that it may have."""
    if isinstance(value, GpuShare):
        return value
    if isinstance(value, str) and value.strip().endswith("m"):
        return GpuShare(share=value)
    if _fraction(value):
        raise ValueError(f"{value} cards cannot be given: {_REMEDY}")
    try:
        return _SHARE.validate_python(value) if isinstance(value, Mapping) else _COUNT.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        problem = plain_problem(first)
        raise ValueError(f"{where}: {problem}" if where else problem) from error


def _fraction(value: object) -> bool:
    try:
        return Decimal(str(value)) % 1 != 0
    except (InvalidOperation, ValueError):
        return False


Gpu = Annotated[
    int | GpuShare,
    WrapValidator(_gpu),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_GPUS},
                {"type": "string", "pattern": _SHARES},
                {
                    "type": "object",
                    "properties": {
                        "share": {"type": "string", "pattern": _SHARES},
                        "memory": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                    },
                    "required": ["share"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
GpuModel = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,62}$")]


class Resources(Document):
    cpu: Cpu = 100
    memory: Memory = 64 * 2**20
    gpu: Gpu = 0

    @field_validator("cpu", "memory")
    @classmethod
    def _positive(cls, value: int) -> int:
        if value <= 0:
            raise ValueError("must be more than zero")
        return value


class Constraints(Document):
    """``user``: of the application, at whose access node it runs."""

    arch: Annotated[str, StringConstraints(pattern=ARCH)] | None = None
    labels: Annotated[dict[Label, Label], Field(max_length=MAX_LABELS)] = {}
    gpu_model: Annotated[list[GpuModel], Field(max_length=MAX_MODELS)] = []
    user: Name | None = None


def asked_of_cards(
    resources: Resources, constraints: Constraints
) -> dict[Literal["gpu", "gpu_share", "gpu_memory", "gpu_models"], Any]:
    """The fields of a task about cards."""
    gpu = resources.gpu
    if isinstance(gpu, int):
        return {"gpu": gpu, "gpu_models": list(constraints.gpu_model)}
    return {
        "gpu": 0,
        "gpu_share": gpu.share,
        "gpu_memory": gpu.memory or 0,
        "gpu_models": list(constraints.gpu_model),
    }


def wrong_gpus(groups: Sequence[tuple[str, Resources, Constraints]], elastic: str | None) -> str | None:
    """What is wrong with what groups of tasks ask of cards, by name. ``elastic``: the group whose size changes."""
    kinds: dict[object, str] = {}  # whole cards of any model are one, however many
    for name, resources, constraints in groups:
        gpu = resources.gpu
        if constraints.gpu_model and not gpu:
            return f"tasks: {name} names a gpu_model and asks for no GPU: give resources.gpu, or leave it out"
        if not gpu:
            continue
        share = (gpu.share, gpu.memory) if isinstance(gpu, GpuShare) else None
        kinds.setdefault((share, *sorted(set(constraints.gpu_model))), name)
        if (share or constraints.gpu_model) and elastic is not None:
            return (
                f"tasks: {name} of a malleable job may ask for whole GPUs of any model only: give gpu: 1 and no "
                "gpu_model, or leave elastic out, so that its size stays"
            )
    if len(kinds) > 1:
        first, second = list(kinds.values())[:2]
        return (
            f"tasks: {first} and {second} ask for different shares, memories or models of cards; within one job all "
            "that ask for a share or a model have to ask alike: make two jobs"
        )
    return None
