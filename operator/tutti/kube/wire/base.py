"""What all wire objects share, and the selectors that several of them hold.

Separate from ``objects`` so that its parts can stand in files of their own.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

# What Go reads as int32 is no larger: an object with more cannot be read there either.
Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class Wire(BaseModel):
    """Read-only, camelCase outside, silent about fields that it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
    )

    def __hash__(self) -> int:
        """Be hashable whatever the fields: pydantic copies unhashable defaults for every object."""
        return hash(type(self))


class Requirement(Wire):
    """A node selector or label selector requirement."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire):
    """What must hold for labels; nothing at all holds for every object."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()
