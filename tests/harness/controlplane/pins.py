"""What is built: one `go.mod` with its `go.sum` per folder of `pins/`, so that none clash.

A pin's key is the hash of the folder's files and of the build's arguments: changing either
builds this pin again and leaves the others alone.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

DEFAULT_K8S = "1.37"
KNOWN_K8S = ("1.37", "1.36", "1.35")
# kube-scheduler's own gang scheduling has another version of its API in each of them. The pods of
# 1.35 name a Workload, so that it has no PodGroups.
NATIVE_GANG_API = {"1.37": "scheduling.k8s.io/v1beta1", "1.36": "scheduling.k8s.io/v1alpha2"}
# Groups of groups have another one, where there are any.
NATIVE_COMPOSITE_API = {"1.37": "scheduling.k8s.io/v1alpha3"}
_PROMETHEUS = "github.com/prometheus/prometheus"
_PINS = Path(__file__).parent / "pins"


@dataclass(frozen=True, slots=True)
class Tool:
    """One binary: its name, its main package, and how long it took on two cores, cold."""

    name: str
    package: str
    usual_seconds: int


@dataclass(frozen=True, slots=True)
class Pin:
    """One folder of `pins/` and the binaries that come from it."""

    name: str
    module: str
    tools: tuple[Tool, ...]
    is_optimized: bool = True  # what need not be fast builds sooner

    @property
    def directory(self) -> Path:
        """The folder that holds this pin's go.mod and go.sum."""
        return _PINS / self.name

    @property
    def version(self) -> str:
        """The version of the pinned module, as go.mod says it."""
        return self._match(rf"\s{re.escape(self.module)} (v\S+)")

    @property
    def go_version(self) -> str:
        """The oldest Go that go.mod accepts."""
        return self._match(r"(?m)^go (\S+)")

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `go build`, the same on every machine."""
        flags = " ".join(["-s", "-w", *(f"-X {flag}" for flag in self._version_flags())])
        # Prometheus finds what it scrapes in twenty clouds; the tests name it in a file.
        tags = ("-tags", "remove_all_sd") if self.module == _PROMETHEUS else ()
        plain = () if self.is_optimized else ("-gcflags=all=-N -l",)
        return ("-mod=readonly", "-trimpath", "-buildvcs=false", *tags, *plain, "-ldflags", flags)

    @property
    def key(self) -> str:
        """Equal for equal pins on equal kinds of machine, different otherwise."""
        digest = hashlib.sha256()
        for part in (
            *((self.directory / name).read_bytes() for name in ("go.mod", "go.sum")),
            # A main program of ours, where the module's own lacks a flag.
            *(path.read_bytes() for path in sorted(self.directory.glob("*.go"))),
            "\0".join(self.arguments).encode(),
            f"{platform.system()} {platform.machine()}".encode(),
        ):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()[:12]

    def _match(self, pattern: str) -> str:
        text = (self.directory / "go.mod").read_text()
        found = re.search(pattern, text)
        if found is None:
            message = f"pins/{self.name}/go.mod: nothing matches {pattern}"
            raise ValueError(message)
        return found.group(1)

    def _version_flags(self) -> list[str]:
        major, minor, *_ = self.version.removeprefix("v").split(".")
        if self.module == "k8s.io/kubernetes":
            # Without these the binaries call themselves v0.0.0-master, which upsets Helm.
            values = {
                "gitVersion": self.version,
                "gitMajor": major,
                "gitMinor": minor,
                "gitTreeState": "archive",
                "gitCommit": "",
            }
            packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
            return [f"{package}.{k}={v}" for package in packages for k, v in values.items()]
        if self.module == "helm.sh/helm/v3":
            # The second and third are the cluster that `helm template` assumes: the default one.
            k8s_major, k8s_minor = DEFAULT_K8S.split(".")
            return [
                f"{self.module}/internal/version.version={self.version}",
                f"{self.module}/internal/version.metadata=",
                f"{self.module}/pkg/chartutil.k8sVersionMajor={k8s_major}",
                f"{self.module}/pkg/chartutil.k8sVersionMinor={k8s_minor}",
            ]
        if self.module == _PROMETHEUS:
            return [f"github.com/prometheus/common/version.Version={self.version[1:]}"]
        return []


def _kubernetes(minor: str) -> Pin:
    main = "k8s.io/kubernetes/cmd"
    return Pin(
        f"kubernetes-{minor}",
        "k8s.io/kubernetes",
        (
            Tool("kube-apiserver", f"{main}/kube-apiserver", 500),
            Tool("kube-controller-manager", f"{main}/kube-controller-manager", 190),
            Tool("kube-scheduler", f"{main}/kube-scheduler", 30),
            Tool("kubectl", f"{main}/kubectl", 45),
        ),
    )


_ETCD = "go.etcd.io/etcd/server/v3"
_SHARED = (
    Pin("etcd", _ETCD, (Tool("etcd", _ETCD, 60),)),
    Pin("kwok", "sigs.k8s.io/kwok", (Tool("kwok", "sigs.k8s.io/kwok/cmd/kwok", 120),)),
    Pin("helm", "helm.sh/helm/v3", (Tool("helm", "helm.sh/helm/v3/cmd/helm", 190),)),
    Pin(
        "scheduler-plugins",
        "sigs.k8s.io/scheduler-plugins",
        (Tool("coscheduling", "sigs.k8s.io/scheduler-plugins/cmd/scheduler", 300),),
    ),
    Pin(
        "prometheus",
        _PROMETHEUS,
        (
            Tool("promtool", f"{_PROMETHEUS}/cmd/promtool", 120),
            Tool("prometheus", f"{_PROMETHEUS}/cmd/prometheus", 50),
        ),
        is_optimized=False,
    ),
)


def _controller(name: str, module: str, binary: str, package: str, usual_seconds: int) -> Pin:
    return Pin(name, module, (Tool(binary, f"{module}{package}", usual_seconds),))


_KUBEFLOW = "github.com/kubeflow"
_SPARK_OPERATOR = f"{_KUBEFLOW}/spark-operator/v2"
_VOLCANO = "volcano.sh/volcano"
# The controllers of other projects.
_CONTROLLERS = (
    Pin(
        "mpi-operator",
        f"{_KUBEFLOW}/mpi-operator",
        (Tool("mpi-operator", ".", 90),),
        is_optimized=False,
    ),
    Pin(
        "volcano",
        _VOLCANO,
        (
            Tool("vc-controller-manager", f"{_VOLCANO}/cmd/controller-manager", 110),
            Tool("vc-webhook-manager", f"{_VOLCANO}/cmd/webhook-manager", 10),
        ),
        is_optimized=False,
    ),
    # Apart from the rest of Volcano, which `make test` builds and this would make slower.
    _controller("volcano-scheduler", _VOLCANO, "vc-scheduler", "/cmd/scheduler", 300),
    _controller(
        "pod-group-controller",
        "sigs.k8s.io/scheduler-plugins",
        "pod-group-controller",
        "/cmd/controller",
        80,
    ),
    _controller("jobset", "sigs.k8s.io/jobset", "jobset", "", 90),
    _controller(
        "training-operator",
        f"{_KUBEFLOW}/training-operator",
        "training-operator",
        "/cmd/training-operator.v1",
        90,
    ),
    _controller(
        "trainer", f"{_KUBEFLOW}/trainer/v2", "trainer", "/cmd/trainer-controller-manager", 90
    ),
    _controller("kuberay", "github.com/ray-project/kuberay/ray-operator", "kuberay", "", 90),
    _controller("lws", "sigs.k8s.io/lws", "lws", "/cmd", 80),
    Pin("dra-kwok-driver", "sigs.k8s.io/karpenter", (Tool("dra-kwok-driver", ".", 90),)),
    _controller("kueue", "sigs.k8s.io/kueue", "kueue", "/cmd/kueue", 250),
    # Its two parts are commands of one program: a binary each, so that each is a process by name.
    Pin(
        "spark-operator",
        _SPARK_OPERATOR,
        (
            Tool("spark-operator", f"{_SPARK_OPERATOR}/cmd/operator", 150),
            Tool("spark-operator-webhook", f"{_SPARK_OPERATOR}/cmd/operator", 5),
        ),
    ),
)


_KUEUE_PERFORMANCE = "sigs.k8s.io/kueue/test/performance/scheduler"
# Kueue's own benchmark, which only ours runs: no control plane needs it.
KUEUE_PERFORMANCE = Pin(
    "kueue-performance",
    "sigs.k8s.io/kueue",
    (
        Tool("minimalkueue", f"{_KUEUE_PERFORMANCE}/minimalkueue", 150),
        Tool("kueue-runner", f"{_KUEUE_PERFORMANCE}/runner", 60),
    ),
)


def chosen_k8s(k8s: str | None = None) -> str:
    """The minor that was asked for, by argument or else by the variable K8S, or the default."""
    chosen = k8s or os.environ.get("K8S") or DEFAULT_K8S
    if chosen not in KNOWN_K8S:
        message = f"Kubernetes {chosen} is not pinned here; pinned are {', '.join(KNOWN_K8S)}"
        raise ValueError(message)
    return chosen


def pins_for(k8s: str) -> tuple[Pin, ...]:
    """All pins of a control plane of this minor."""
    return (_kubernetes(k8s), *_SHARED, *_CONTROLLERS)


def all_pins() -> tuple[Pin, ...]:
    """Every pin, of every minor."""
    kubernetes = (_kubernetes(minor) for minor in KNOWN_K8S)
    return (*kubernetes, *_SHARED, *_CONTROLLERS, KUEUE_PERFORMANCE)


def pin_called(name: str) -> Pin:
    """The pin of this name, such as "volcano"."""
    return next(pin for pin in all_pins() if pin.name == name)
