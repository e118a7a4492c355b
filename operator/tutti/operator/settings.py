"""Settings: read from the environment alone and checked before anything starts.

Each field is the variable ``TUTTI_<FIELD>``; a comment gives the reason for its default.
"""

import difflib
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..kube import gang_sources
from ..kube.codec.hand_over import KUBE_SCHEDULER
from ..model.decisions import Mode, Objective, Policy, RolloutLimits
from ..model.queues import Preemption
from ..strategies import names
from ..strategies.problem import Budget

PREFIX = "TUTTI_"
YEAR = 365 * 24 * 3600.0  # seconds


def _words(value: object) -> object:
    """The values of a comma-separated variable."""
    if not isinstance(value, str):
        return value
    return [word.strip() for word in value.split(",")] if value.strip() else []


def _known_sources(names: tuple[str, ...]) -> tuple[str, ...]:
    gang_sources.chosen(names)
    return names


Namespace = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]


class SettingsError(Exception):
    """One or more settings are unknown or wrong; ``sentences`` has one sentence for each."""

    def __init__(self, sentences: tuple[str, ...]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


class Settings(BaseModel):
    """All settings, each with a default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scheduler_name: str = Field(
        default="tutti",
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        max_length=253,
        description="Tutti schedules the pods that have this name in spec.schedulerName",
    )
    namespaces: Annotated[tuple[Namespace, ...], BeforeValidator(_words)] = Field(
        default=(),
        description="namespaces whose gangs Tutti schedules, separated by commas; empty means all. "
        "Pods of all namespaces count when Tutti computes the free room of a node",
    )
    gang_sources: Annotated[
        tuple[str, ...], BeforeValidator(_words), AfterValidator(_known_sources)
    ] = Field(
        # objects of other projects are read only if the user asks for it
        default=tuple(source.name for source in gang_sources.DEFAULT),
        description="kinds of objects besides Tutti's that declare gangs, by resource and API "
        "group, separated by commas; Tutti reads their objects. You can name: "
        + ", ".join(gang_sources.OPTIONAL),
    )
    strategy: str = Field(
        default="ilp",  # exact admission is what Tutti is for
        description="the strategy that finds placements: one of " + ", ".join(names()),
    )
    budget_seconds: float = Field(
        default=30.0,  # a safety net: a plan takes milliseconds on most clusters
        gt=0,
        le=600,
        description="how long one search may take, in seconds; then Tutti uses the best plan found",
    )
    budget_nodes: int = Field(
        default=Budget().nodes,  # larger budgets rarely find better plans
        ge=1,
        le=1_000_000,
        description="how many branch-and-bound nodes one search may explore for each priority; "
        "then Tutti uses the best plan found. With more, Tutti proves more plans, and a search "
        "takes longer",
    )
    objective: Objective = Field(
        default=Objective.RESOURCES,  # maximises the use of the cluster
        description="what Tutti maximises among gangs of equal priority: " + ", ".join(Objective),
    )
    age_seconds: float = Field(
        default=3600.0,  # gangs run for hours
        gt=0,
        le=YEAR,
        allow_inf_nan=False,
        description="the wait, in seconds, after which the objective `resources` doubles the value "
        "of a gang; after twice this time the value is tripled, and so on",
    )
    starvation_seconds: float = Field(
        default=3600.0,  # a gang lets others go first for an hour
        gt=0,
        le=YEAR,
        allow_inf_nan=False,
        description="a gang that has waited this long, in seconds, goes before all others of its "
        "priority",
    )
    usage_half_life_seconds: int = Field(
        default=0,  # shares that count now are easier to explain
        ge=0,
        le=int(YEAR),
        description="the half-life, in seconds, of what queues have borrowed in the past: among "
        "queues that borrow equally much now, and gangs of equal priority, the queue that has "
        "borrowed less comes first; 0 means that the past does not count",
    )
    preemption: Preemption = Field(
        default=Preemption.OFF,  # an upgrade must not end running pods
        description="what Tutti may end so that gangs start, in queues whose `spec.preemption` "
        "says nothing: " + ", ".join(Preemption) + "; with Off, Tutti ends nothing for any queue",
    )
    evictions_per_cycle: int = Field(
        default=500,  # a mistake is seen before it has emptied a cluster
        ge=0,
        le=1_000_000,
        description="the most pods that one cycle ends so that gangs start; a claim that ends more "
        "has a cycle of its own; 0 means no limit",
    )
    evictions_per_hour: int = Field(
        default=2000,
        ge=0,
        le=1_000_000,
        description="the most pods of one queue, or of a cluster without Queues, that Tutti ends "
        "within an hour so that gangs start; a claim that ends more is the only one of its hour; "
        "0 means no limit",
    )
    mode: Mode = Field(
        default=Mode.ACTIVE,  # a scheduler is installed to start pods
        description="whether Tutti carries out plans: " + ", ".join(Mode) + "; shadow only reports "
        "what Tutti would do, paused finishes the gangs that have a Reservation",
    )
    bindings_per_cycle: int = Field(
        default=0,  # gangs that fit together start together
        ge=0,
        le=100_000,
        description="the most pods for which one cycle reserves room, in whole gangs; a larger "
        "gang has a cycle of its own; 0 means no limit",
    )
    dump_directory: str = Field(
        default="",  # the system clears temporary files
        description="the directory for the dump that Tutti writes when a plan fails its check; "
        "empty means the system's directory for temporary files",
    )
    identity: str = Field(
        default="",  # in a cluster, the host's name is the pod's name, which is unique
        max_length=128,
        description="the name of this replica in the Lease; empty means the host's name",
    )
    lease_namespace: str = Field(
        default="",  # the namespace where the chart grants rights to Leases
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
        max_length=63,
        description="the namespace of the leader's Lease, which has the name of the scheduler; "
        "empty means the pod's own namespace, or kube-system outside a cluster",
    )
    bind_volumes: bool = Field(
        default=True,  # WaitForFirstConsumer is the usual default class of managed clusters
        description="whether Tutti binds claims of classes with WaitForFirstConsumer before it "
        "binds their pods; otherwise such pods wait with NotModelled",
    )
    volume_seconds: float = Field(
        default=600.0,  # bindTimeoutSeconds of kube-scheduler's VolumeBinding
        ge=10,
        le=86_400,
        description="the seconds within which all claims of a gang must be bound once it has a "
        "Reservation; then the gang is released and planned again",
    )
    hand_over: bool = Field(
        default=False,  # it needs the right to patch pods
        description="whether Tutti hands the pods of PodGroups that say `binding: KubeScheduler` "
        "over to kube-scheduler",
    )
    spark_enabled: bool = Field(
        default=True,  # a driver that starts alone may wait for its executors for ever
        description="whether Tutti makes a gang of each Spark application whose driver is pending",
    )
    devices_enabled: bool = Field(
        default=True,  # devices are read only once a pod has a claim, or is to get one
        description="whether Tutti places pods with claims for devices (DRA) and allocates these; "
        "otherwise they wait with the reason NotModelled",
    )
    bindings_in_flight: int = Field(
        default=64,  # with 24 or 128 the last of many gangs waits longer: docs/decisions/0007
        ge=1,
        le=256,
        description="how many bindings Tutti sends to the API server at the same time",
    )
    probe_port: int = Field(
        default=8080,
        ge=0,
        le=65535,
        description="the port of /healthz, /readyz and /metrics; 0 means any free port",
    )
    log_format: Literal["auto", "human", "json"] = Field(
        default="auto",  # human at a terminal, JSON elsewhere
        description="the format of log lines: auto, human or json; auto means human at a terminal "
        "and json elsewhere",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",  # one line per changed gang, no line when nothing changes
        description="the level of log lines: debug, info, warning or error; Tutti writes this "
        "level and above",
    )

    @property
    def policy(self) -> Policy:
        """The settings that decide which gangs start first."""
        return Policy(self.objective, self.age_seconds, self.starvation_seconds, self.preemption)

    @property
    def rollout_limits(self) -> RolloutLimits:
        """The settings that limit how much of a plan Tutti carries out."""
        return RolloutLimits(
            self.mode, self.bindings_per_cycle, self.evictions_per_cycle, self.evictions_per_hour
        )

    @property
    def budget(self) -> Budget:
        """The limits of one search."""
        return Budget(self.budget_nodes, self.budget_seconds)

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
        if settings.hand_over and settings.scheduler_name == KUBE_SCHEDULER:
            wrong.append(
                f"{PREFIX}HAND_OVER: pods of scheduler {KUBE_SCHEDULER} are handed over to "
                f"kube-scheduler, so {PREFIX}SCHEDULER_NAME cannot be {KUBE_SCHEDULER}"
            )
        if wrong:
            raise SettingsError(tuple(wrong))
        return settings

    @classmethod
    def of_operator(cls, environment: Mapping[str, str]) -> Self:
        """Read every ``TUTTI_*`` variable for an operator, which may bind pods.

        Raises:
            SettingsError: as ``from_environment``, or both kube-scheduler and this operator would
                bind the same pods.
        """
        settings = cls.from_environment(environment)
        if settings.mode != Mode.SHADOW and settings.scheduler_name == KUBE_SCHEDULER:
            sentence = (
                f"{PREFIX}SCHEDULER_NAME: kube-scheduler binds the pods of {KUBE_SCHEDULER}, and "
                f"with {PREFIX}MODE={settings.mode} Tutti would bind them, too; set "
                f"{PREFIX}MODE={Mode.SHADOW}, or give Tutti another name"
            )
            raise SettingsError((sentence,))
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
    return f"{variable}: {error['input']!r} is not valid: {error['msg']}"
