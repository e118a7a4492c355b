"""The containers of Spark's pods as processes of this machine, and what a cluster gives them.

What differs from a cluster, all of it outside of what Spark is told in its pods:

- The image is PyPI's pyspark and a Java: `/opt/spark` is pyspark's folder, `python3` its Python.
- A pod's file system is a folder. Where an argument, a variable or a mounted text names a mounted
  folder or `/opt/spark`, it names the one here.
- A pod's IP is an address of the loopback network, its own for each pod. Services are not served: a
  hosts file, which the JVMs are told of (`jdk.net.hosts.file`), gives a headless one's name the
  address of the pod that it selects.
- `https://kubernetes.default.svc` and the mounted service account are told to the JVMs by the
  properties of Spark's that say where they are; the token is the pod's own, as a kubelet's is.
- Requests and limits are counted at admission, and not enforced.

The properties above reach every JVM by JAVA_TOOL_OPTIONS; the commands are the image's own.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ...harness.controlplane import die_with_parent
from ...harness.controlplane.errors import RequestError
from ..spark_sizes import environment
from .image import HOME, entered

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from ...harness.controlplane.access import Access

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
WORK = f"{HOME}/work-dir"  # the image's working directory
TOKEN_SECONDS = 3600
POLL_SECONDS = 0.1
MOUNT_SECONDS = 0.5  # until what is to be mounted is looked for again
NOT_FOUND = 404
TAIL_LINES = 60


class Paths:
    """Where the folders of a container are on this machine."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places
        longest_first = sorted(places, key=len, reverse=True)
        either = "|".join(re.escape(place) for place in longest_first)
        self._pattern = re.compile(rf"(?<!\w)(?:{either})(?![\w.-])")

    def moved(self, text: str) -> str:
        """The text with each of these folders' names replaced."""
        return self._pattern.sub(lambda found: self._places[found[0]], text)


@dataclass(frozen=True, slots=True)
class Ran:
    """A pod whose process was started here."""

    name: str
    node: str
    address: str
    log: Path
    labels: Mapping[str, str]

    def tail(self) -> str:
        """The end of what it said."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])


class Processes:
    """One process for each pod, in a session of its own; ``ran`` has what was started, by uid."""

    def __init__(self, access: Access, spark: Path, folder: Path) -> None:
        """``spark`` is an environment of `spark_sizes`; pods and logs come into ``folder``."""
        self._access = access
        self._spark = spark
        self._folder = folder
        self._hosts = folder / "hosts"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ran: dict[str, Ran] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            _end(process)

    def ran_as(self, name: str) -> Ran:
        """The one that was started under this name."""
        (found,) = [ran for ran in self.ran.values() if ran.name == name]
        return found

    # What a kubelet asks for

    async def start(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        """Mount what it mounts, and run its command; its address."""
        metadata, spec = pod["metadata"], pod["spec"]
        (container,) = spec["containers"]
        root = self._folder / metadata["name"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        home = str(environment.home(self._spark))
        paths = Paths({HOME: home, **{place: f"{root}{place}" for place in mounts.values()}})
        for volume in spec["volumes"]:
            if volume["name"] in mounts:
                await self._mount(pod, volume, Path(f"{root}{mounts[volume['name']]}"), paths)
        ran = Ran(
            metadata["name"],
            spec["nodeName"],
            _address(len(self.ran) + 1),
            self._folder / f"{metadata['name']}.log",
            metadata["labels"],
        )
        self.ran[metadata["uid"]] = ran
        self._write_hosts(metadata["namespace"])
        variables = self._variables(container, ran, paths)
        arguments = [paths.moved(argument) for argument in container["args"]]
        command = entered(arguments, variables)
        self._processes[metadata["uid"]] = _run(command, variables, ran, Path(f"{root}{WORK}"))
        return {"podIP": ran.address, "podIPs": [{"ip": ran.address}]}

    async def ended(self, pod: Mapping[str, Any]) -> int:
        """Its exit code, as a container's: 128 and more for signals."""
        process = self._processes[pod["metadata"]["uid"]]
        await _over(process)
        code = _end(process)
        return code if code >= 0 else 128 - code

    async def stop(self, pod: Mapping[str, Any]) -> None:
        """Ask it to end, and make it end after its grace period."""
        process = self._processes.get(pod["metadata"]["uid"])
        if process is None:
            return
        process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(pod["metadata"]["deletionGracePeriodSeconds"]):
                await _over(process)
        _end(process)

    # What it finds

    async def _mount(
        self, pod: Mapping[str, Any], volume: Mapping[str, Any], place: Path, paths: Paths
    ) -> None:
        base = f"/api/v1/namespaces/{pod['metadata']['namespace']}"
        if source := volume.get("configMap"):
            found = await self._there(f"{base}/configmaps/{source['name']}")
            texts = {key: paths.moved(text) for key, text in found.get("data", {}).items()}
            items = source.get("items") or [{"key": key, "path": key} for key in texts]
            _fill(place, {item["path"]: texts[item["key"]] for item in items})
        elif "projected" in volume:
            _fill(place, self._account(pod, f"{base}/serviceaccounts"))
        elif "emptyDir" in volume:
            _fill(place, {})
        else:
            raise NotImplementedError(f"volume {volume['name']}: no such kind here")

    async def _there(self, path: str) -> Mapping[str, Any]:
        """An object, once it is there: a kubelet, too, goes on trying to mount it."""
        while True:
            try:
                return self._access.request("GET", path)
            except RequestError as problem:
                if problem.status != NOT_FOUND:
                    raise
            await asyncio.sleep(MOUNT_SECONDS)

    def _account(self, pod: Mapping[str, Any], accounts: str) -> Mapping[str, str]:
        """What admission lets every pod mount: its service account's token, and whom to trust."""
        about = {name: pod["metadata"][name] for name in ("name", "uid")}
        bound = {"apiVersion": "v1", "kind": "Pod", **about}
        wish = {"spec": {"expirationSeconds": TOKEN_SECONDS, "boundObjectRef": bound}}
        name = pod["spec"]["serviceAccountName"]
        answer = self._access.request("POST", f"{accounts}/{name}/token", wish)
        return {
            "token": answer["status"]["token"],
            "ca.crt": self._access.authority.read_text(),
            "namespace": pod["metadata"]["namespace"],
        }

    def _write_hosts(self, namespace: str) -> None:
        """The names that resolve: this machine's, and those of Services by their selectors."""
        path = f"/api/v1/namespaces/{namespace}/services"
        lines = [f"127.0.0.1 localhost {socket.gethostname()}"]
        for service in self._access.request("GET", path)["items"]:
            selector = (service["spec"].get("selector") or {}).items()
            name = f"{service['metadata']['name']}.{namespace}.svc"
            lines += [
                f"{ran.address} {name} {name}.cluster.local"
                for ran in self.ran.values()
                if selector and selector <= ran.labels.items()
            ]
        self._hosts.write_text("".join(f"{line}\n" for line in lines))

    def _variables(self, container: Mapping[str, Any], ran: Ran, paths: Paths) -> Mapping[str, str]:
        """The image's, then the pod's own, then what makes up for a cluster."""
        here = environment.variables(self._spark)
        fields = {"status.podIP": ran.address, "metadata.name": ran.name}
        said = {
            each["name"]: fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            if "valueFrom" in each
            else paths.moved(each.get("value", ""))
            for each in container.get("env", [])
        }
        mounted = "spark.kubernetes.authenticate.driver.mounted"
        instead = {
            "jdk.net.hosts.file": str(self._hosts),
            "spark.kubernetes.driver.master": self._access.server,
            f"{mounted}.oauthTokenFile": paths.moved(f"{ACCOUNT}/token"),
            f"{mounted}.caCertFile": paths.moved(f"{ACCOUNT}/ca.crt"),
        }
        return {
            **{name: here[name] for name in ("PATH", "HOME", "JAVA_HOME", "KUBECONFIG")},
            "SPARK_HOME": str(environment.home(self._spark)),
            **said,
            "JAVA_TOOL_OPTIONS": " ".join(
                [environment.QUICK, *(f"-D{name}={value}" for name, value in instead.items())]
            ),
        }


def _address(number: int) -> str:
    """The n-th of a program's own part of the loopback network."""
    pid = os.getpid()
    return f"127.{64 + pid // 256 % 64}.{pid % 256}.{number}"


def _fill(place: Path, texts: Mapping[str, str]) -> None:
    """A mounted folder, which nobody else may read: it may hold a token."""
    place.mkdir(parents=True)
    place.chmod(0o700)
    for name, text in texts.items():
        (place / name).write_text(text)


def _run(
    command: list[str], variables: Mapping[str, str], ran: Ran, work: Path
) -> subprocess.Popen[bytes]:
    work.mkdir(parents=True)
    guard = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
    with ran.log.open("wb") as log:
        return subprocess.Popen(
            [*guard, *command],
            env=variables,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


async def _over(process: subprocess.Popen[bytes]) -> None:
    """Until it has ended; it is not reaped, so that its group's number stays its own."""
    while process.returncode is None:
        if _has_ended(process):
            return
        await asyncio.sleep(POLL_SECONDS)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, options) is not None


def _end(process: subprocess.Popen[bytes]) -> int:
    """End whatever is left in its session, as the end of a container does; its exit code."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()
