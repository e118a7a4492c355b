"""Settings: what a user may choose, from the environment alone, checked before anything starts.

Each field is the variable ``TUTTI_<FIELD>``; its default's reason stands beside it.
"""

import difflib
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from .model.decisions import Mode, Objective, Policy, RolloutLimits
from .strategies import names
from .strategies.problem import Budget

PREFIX = "TUTTI_"
YEAR = 365 * 24 * 3600.0  # seconds


def _words(value: object) -> object:
    """A variable holds several values with commas between them."""
    if not isinstance(value, str):
        return value
    return [word.strip() for word in value.split(",")] if value.strip() else []


Namespace = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]


class SettingsError(Exception):
    """One or more settings are unknown or wrong; ``sentences`` has one sentence for each."""

    def __init__(self, sentences: tuple[str, ...]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


class Settings(BaseModel):
    """Everything that can be set; unset is a sane default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scheduler_name: str = Field(
        default="tutti",
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        max_length=253,
        description="the spec.schedulerName of the pods that are served",
    )
    namespaces: Annotated[tuple[Namespace, ...], BeforeValidator(_words)] = Field(
        default=(),
        description="namespaces whose gangs are served, with commas between them; empty is all. "
        "The room of nodes is the whole cluster's all the same",
    )
    strategy: str = Field(
        default="ilp",  # exact admission is what Tutti is for
        description="how placements are found: one of " + ", ".join(names()),
    )
    budget_seconds: float = Field(
        default=30.0,  # the last safety net; a plan takes milliseconds on most clusters
        gt=0,
        le=600,
        description="wall time that one search may take before the best so far is used",
    )
    objective: Objective = Field(
        default=Objective.RESOURCES,  # a cluster is bought to be used
        description="what the gangs of one priority that start together are chosen for: "
        + ", ".join(Objective),
    )
    age_seconds: float = Field(
        default=3600.0,  # gangs run for hours
        gt=0,
        le=YEAR,
        allow_inf_nan=False,
        description="a gang that has waited so long counts twice for its resources, and so on",
    )
    starvation_seconds: float = Field(
        default=3600.0,  # an hour of others' going first is enough
        gt=0,
        le=YEAR,
        allow_inf_nan=False,
        description="a gang that has waited so long goes before all others of its priority",
    )
    mode: Mode = Field(
        default=Mode.ACTIVE,  # whoever installs a scheduler wants pods to start
        description="whether plans are carried out: " + ", ".join(Mode) + "; shadow only says what "
        "it would do, paused finishes what was begun",
    )
    bindings_per_cycle: int = Field(
        default=0,  # gangs that fit together start together
        ge=0,
        le=100_000,
        description="pods that one cycle begins to bind at most, whole gangs only; a larger gang "
        "goes alone; 0 is any number",
    )
    dump_directory: str = Field(
        default="",  # what the system clears by itself
        description="where a dump goes if a plan breaks a promise; empty is the system's "
        "directory for temporary files",
    )
    identity: str = Field(
        default="",  # in a cluster that is the pod's name, which no other replica has
        max_length=128,
        description="this replica's name in the Lease; empty is the host's name",
    )
    lease_namespace: str = Field(
        default="",  # the one place where the chart may grant rights to Leases
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
        max_length=63,
        description="where the Lease of the leader is, named like the scheduler; empty is the "
        "pod's own namespace, or kube-system outside a cluster",
    )
    spark_enabled: bool = Field(
        default=False,  # it reads ConfigMaps of all namespaces, which must be granted on purpose
        description="whether pending drivers of Spark get a PodGroup by themselves",
    )
    bindings_in_flight: int = Field(
        default=64,  # with 24 or 128 the last of many gangs waits longer: docs/decisions/0007
        ge=1,
        le=256,
        description="bindings that are sent to the API server at the same time",
    )
    probe_port: int = Field(
        default=8080,
        ge=0,
        le=65535,
        description="the port of /healthz, /readyz and /metrics; 0 takes any free one",
    )
    log_format: Literal["auto", "human", "json"] = Field(
        default="auto",  # human at a terminal, JSON elsewhere
        description="how log lines look",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",  # one line per changed gang, silence when nothing changes
        description="the least important log lines that are written",
    )

    @property
    def policy(self) -> Policy:
        """What is chosen about who starts first."""
        return Policy(self.objective, self.age_seconds, self.starvation_seconds)

    @property
    def restraint(self) -> RolloutLimits:
        """What is chosen about how much of a plan is carried out."""
        return RolloutLimits(self.mode, self.bindings_per_cycle)

    @property
    def budget(self) -> Budget:
        """What is chosen about how long may be searched."""
        return Budget(seconds=self.budget_seconds)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read every ``TUTTI_*`` variable.

        Raises:
            SettingsError: with one sentence for each unknown name or wrong value.
        """
        given = {
            name.removeprefix(PREFIX).lower(): value
            for name, value in environment.items()
            if name.startswith(PREFIX)
        }
        strategy = given.get("strategy")
        wrong = [] if strategy in (None, *names()) else [_unknown_strategy(str(strategy))]
        try:
            settings = cls.model_validate(given)
        except ValidationError as problem:
            wrong += [_sentence(error) for error in problem.errors()]
            raise SettingsError(tuple(wrong)) from None
        if wrong:
            raise SettingsError(tuple(wrong))
        return settings


def _unknown_strategy(name: str) -> str:
    nearest = difflib.get_close_matches(name, names(), n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return f"{PREFIX}STRATEGY: {name!r} is not one of {', '.join(names())}{hint}"


def _sentence(error: Mapping[str, object]) -> str:
    location = error["loc"]
    name = str(location[0]) if isinstance(location, tuple) and location else "?"
    variable = PREFIX + name.upper()
    if error["type"] == "extra_forbidden":
        nearest = difflib.get_close_matches(name, Settings.model_fields, n=1, cutoff=0)
        return f"{variable} is not a setting; the nearest is {PREFIX}{nearest[0].upper()}"
    return f"{variable}: {error['input']!r} will not do: {error['msg']}"
