"""What a pod says of the Spark application that it is part of.

Separate from the cluster's values: only pods of Spark have it, and only their gangs come from it.
"""

from dataclasses import dataclass

DRIVER = "driver"
EXECUTOR = "executor"


@dataclass(frozen=True, slots=True)
class ConfigMapKey:
    """A text in a ConfigMap that a pod mounts: the ConfigMap's name, and the key."""

    config_map: str
    key: str


@dataclass(frozen=True, slots=True)
class SparkPod:
    """A pod that joins its application's gang by Spark's own labels, for it names no other.

    ``properties`` and ``template`` are there for a driver that mounts them; ``annotations`` are the
    annotations by which a gang can be declared.
    """

    app: str  # the application's id, and the name of its PodGroup
    role: str
    properties: ConfigMapKey | None = None
    template: ConfigMapKey | None = None  # of its executors' pods
    annotations: tuple[tuple[str, str], ...] = ()  # sorted

    @property
    def is_driver(self) -> bool:
        """Whether it is the application's driver."""
        return self.role == DRIVER

    @property
    def is_declaring(self) -> bool:
        """Whether it says how large its gang is: a driver does, and an executor by annotation."""
        return self.is_driver or bool(self.annotations)
