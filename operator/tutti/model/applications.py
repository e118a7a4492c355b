"""The fields of pods that declare the gang of their application, or join it: of Spark, YuniKorn."""

from dataclasses import dataclass

DRIVER = "driver"
EXECUTOR = "executor"


@dataclass(frozen=True, slots=True)
class ConfigMapKey:
    """A text in a ConfigMap that a pod mounts: the name of the ConfigMap, and the key."""

    config_map: str
    key: str


@dataclass(frozen=True, slots=True)
class ApplicationPod:
    """The application of a pod that names no gang and joins the gang of its application.

    A driver of Spark has ``properties`` and ``template`` if it mounts them. ``annotations`` are the
    annotations that can declare a gang of Spark. A pod that names a task group of YuniKorn has
    ``task_groups``, and its role is the task group.
    """

    app: str  # the id of the application, and the name of its PodGroup
    role: str
    properties: ConfigMapKey | None = None
    template: ConfigMapKey | None = None  # the pod template of its executors
    annotations: tuple[tuple[str, str], ...] = ()  # sorted
    # The task groups of YuniKorn, as JSON; empty if another pod has them, None if Spark's own
    # fields declare the gang.
    task_groups: str | None = None
    timeout_seconds: int | None = None  # of YuniKorn's task groups
    fails_at_timeout: bool = False
    owner_version: str = ""  # the apiVersion of the controller of a pod with task groups

    @property
    def is_spark(self) -> bool:
        """Whether Spark's own fields declare its gang."""
        return self.task_groups is None

    @property
    def is_driver(self) -> bool:
        """Whether it is the driver of an application of Spark."""
        return self.is_spark and self.role == DRIVER

    @property
    def is_declaring(self) -> bool:
        """Whether it declares its gang: a driver, a pod with annotations or with task groups."""
        return self.is_driver or bool(self.annotations) or bool(self.task_groups)
