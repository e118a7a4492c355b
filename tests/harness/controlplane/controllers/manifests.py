"""CRDs and webhooks of a controller, from the files of its module, on this machine's loopback.

The files are those that the binary is built from: nothing of them is in this repository.
"""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from .. import toolchain
from ..errors import BuildError
from ..pins import pin_called

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..access import Access
    from ..pins import Pin
    from ..wiring import Wiring
    from .recipes import Recipe

_CRD = "CustomResourceDefinition"
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def install(plane: Access, wiring: Wiring, recipe: Recipe) -> None:
    """Install what this controller needs before its start."""
    for namespace in recipe.namespaces:
        plane.create_namespace(namespace)
    objects = [
        _on_loopback(item, wiring.address(recipe.webhooks), plane.authority)
        if recipe.webhooks
        else item
        for item in _objects(recipe, wiring.binaries["kubectl"])
    ]
    plane.install([item for item in objects if item["kind"] == _CRD])
    if recipe.webhooks:
        plane.apply(item for item in objects if item["kind"] in _WEBHOOKS)


def _objects(recipe: Recipe, kubectl: Path) -> Iterator[dict[str, Any]]:
    for name, *paths in recipe.manifests:
        root = _module_directory(pin_called(name))
        for path in paths:
            text = _text(root / path, kubectl)
            yield from (item for item in yaml.load_all(text, yaml.CSafeLoader) if item)


def _module_directory(pin: Pin) -> Path:
    """Where Go keeps the files of a pinned module; downloaded if they are gone."""
    go = toolchain.go_for(pin.go_version)
    command = [str(go), "mod", "download", "-json", pin.module]
    done = subprocess.run(
        command,
        cwd=pin.directory,
        env=toolchain.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        raise BuildError(f"no files of {pin.module}: {answer.get('Error') or done.stderr}")
    return Path(answer["Dir"])


def _text(path: Path, kubectl: Path) -> str:
    if path.is_file():
        return path.read_text()
    if (path / "kustomization.yaml").exists():
        # By a dot: kustomize takes a path with "github.com/" in it for a repository to fetch.
        return _stdout([str(kubectl), "kustomize", "."], path)
    return "\n---\n".join(file.read_text() for file in sorted(path.glob("*.yaml")))


def _stdout(command: Sequence[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)} in {directory}: {done.stderr.strip()}")
    return done.stdout


def _on_loopback(item: dict[str, Any], address: str, authority: Path) -> dict[str, Any]:
    """The object with its webhooks at this address, trusted by the control plane's certificate."""
    bundle = base64.b64encode(authority.read_bytes()).decode()

    def at(client: Mapping[str, Any]) -> dict[str, str]:
        return {"url": f"https://{address}{client['service']['path']}", "caBundle": bundle}

    conversion = item.get("spec", {}).get("conversion", {}).get("webhook")
    for webhook in [*item.get("webhooks", ()), *([conversion] if conversion else [])]:
        webhook["clientConfig"] = at(webhook["clientConfig"])
    return item
