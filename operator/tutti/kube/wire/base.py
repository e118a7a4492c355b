"""What all wire objects share, and the selectors that several of them hold.

Separate from ``objects`` so that its parts can stand in files of their own.
"""

from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

# What Go reads as int32 is no larger: an object with more cannot be read there either.
Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
# Amounts stay as they came: ``quantity`` reads them, and a bad one must not lose its object.
Quantities = dict[str, Any]


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


class OwnerReference(Wire):
    """Who made an object, and whether it is the one controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Wire):
    """Names, versions, labels and annotations."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: AwareDatetime | None = None
    deletion_timestamp: AwareDatetime | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Object(Wire):
    """What every API object has."""

    metadata: Metadata = Metadata()


class Condition(Wire):
    """One line of an object's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ListMetadata(Wire):
    """The moment that a list shows, and how to ask for its next page."""

    resource_version: str = ""
    # "continue" is a word of Python's.
    continue_token: str = Field(default="", alias="continue")
