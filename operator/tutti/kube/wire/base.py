"""The base classes of all wire objects, and the selectors that several of them have."""

from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

# Go reads these fields as int32, so an object with a larger number cannot be read there either.
Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
# Amounts as they came. ``codec.quantity`` reads them, so a bad amount does not lose its object.
Quantities = dict[str, Any]


class Wire(BaseModel):
    """A part of an API object: frozen, camelCase in JSON; unknown fields are ignored."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
    )

    def __hash__(self) -> int:
        """Be hashable with any fields, because pydantic copies an unhashable default every time."""
        return hash(type(self))


class Requirement(Wire):
    """A node selector or label selector requirement."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire):
    """Requirements on labels that must all hold; without any, it selects every object."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()


class OwnerReference(Wire):
    """An owner of an object; ``controller`` says whether it is the managing controller."""

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
    """The base class of API objects."""

    metadata: Metadata = Metadata()


class Condition(Wire):
    """A condition in the status of an object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ListMetadata(Wire):
    """The version of a list, and the token for its next page."""

    resource_version: str = ""
    # "continue" is a keyword of Python.
    continue_token: str = Field(default="", alias="continue")
