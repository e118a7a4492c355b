"""CRDs and webhooks of a controller, from the files of its module, on this machine's loopback.

The files are those that the binary is built from: nothing of them is in this repository.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from .. import credentials, toolchain
from ..errors import BuildError
from ..pins import pin_called

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..access import Access
    from ..pins import Pin
    from ..wiring import Wiring
    from .recipe import Recipe

_CRD = "CustomResourceDefinition"
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def install(plane: Access, wiring: Wiring, recipe: Recipe) -> None:
    """Install what this controller needs before its start."""
    objects = list(_objects(recipe, wiring.binaries["kubectl"]))
    if recipe.webhooks:
        trusted = _certified(plane, wiring, recipe)
        for item in objects:
            _move(item, wiring.address(recipe.webhooks), trusted)
    plane.install([item for item in objects if item["kind"] == _CRD])
    if recipe.webhooks:
        plane.apply(item for item in objects if item["kind"] in _WEBHOOKS)


def _certified(plane: Access, wiring: Wiring, recipe: Recipe) -> str:
    """Give the webhooks their certificate; answers what the API server shall trust."""
    folder = wiring.certificates(recipe.webhooks)
    shutil.rmtree(folder, ignore_errors=True)  # of a start before that lost a port
    folder.mkdir(parents=True)
    if recipe.secret is None:
        for name in ("tls.crt", "tls.key"):
            (folder / name).symlink_to(wiring.file(name.replace("tls", "server")))
        return plane.authority.read_text()
    # It renews what is in this Secret, and finds nothing to renew; a kubelet would mount it.
    authority = credentials.Authority(recipe.secret.authority, rsa_key=True)
    certificate, key = authority.server(recipe.secret.service)
    (folder / "tls.crt").write_text(certificate)
    credentials.write_private(folder / "tls.key", key)
    plane.create_namespace(recipe.secret.namespace)
    plane.apply(
        [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"namespace": recipe.secret.namespace, "name": recipe.secret.name},
                "stringData": {
                    "ca.crt": authority.certificate,
                    "ca.key": authority.private_key,
                    "tls.crt": certificate,
                    "tls.key": key,
                },
            }
        ]
    )
    return authority.certificate


def _objects(recipe: Recipe, kubectl: Path) -> Iterator[dict[str, Any]]:
    for name, *paths in recipe.manifests:
        root = module_directory(pin_called(name))
        for path in paths:
            text = _text(root / path, kubectl)
            yield from (item for item in yaml.load_all(text, yaml.CSafeLoader) if item)


def module_directory(pin: Pin) -> Path:
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


def _move(item: dict[str, Any], address: str, trusted: str) -> None:
    """Let the API server call the webhooks of this object at this address."""
    bundle = base64.b64encode(trusted.encode()).decode()
    conversion = item.get("spec", {}).get("conversion", {}).get("webhook")
    for webhook in [*item.get("webhooks", ()), *([conversion] if conversion else [])]:
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {"url": f"https://{address}{path}", "caBundle": bundle}
