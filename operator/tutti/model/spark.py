"""The fields of Spark pods that declare the gang of their application."""

from dataclasses import dataclass

DRIVER = "driver"
EXECUTOR = "executor"


@dataclass(frozen=True, slots=True)
class ConfigMapKey:
    """A text in a ConfigMap that a pod mounts: the name of the ConfigMap, and the key."""

    config_map: str
    key: str


@dataclass(frozen=True, slots=True)
class SparkPod:
    """The Spark fields of a pod that names no gang and joins one by Spark's own labels.

    A driver has ``properties`` and ``template`` if it mounts them. ``annotations`` are the
    annotations that can declare a gang.
    """

    app: str  # the id of the application, and the name of its PodGroup
    role: str
    properties: ConfigMapKey | None = None
    template: ConfigMapKey | None = None  # the pod template of its executors
    annotations: tuple[tuple[str, str], ...] = ()  # sorted

    @property
    def is_driver(self) -> bool:
        """Whether it is the driver of the application."""
        return self.role == DRIVER

    @property
    def is_declaring(self) -> bool:
        """Whether it declares the size of its gang: a driver, or an executor with annotations."""
        return self.is_driver or bool(self.annotations)
