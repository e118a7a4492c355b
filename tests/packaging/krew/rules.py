"""What krew wants of a manifest, and what its index asks for besides.

The rules are those of krew's `internal/index/validation` and of its developer guide
(https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/), in words of our own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

VERSION = "krew.googlecontainertools.github.com/v1alpha2"
NAME = re.compile(r"[\w-]+")
SEMANTIC = re.compile(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
SHA256 = re.compile(r"[0-9a-f]{64}")
ARCHIVES = (".zip", ".tar.gz")
SPEC = {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
PLATFORM = {"selector", "uri", "sha256", "bin", "files", "license"}
KEYS = {"os", "arch"}
MOST_WORDS = 60  # characters of a short description, so that `kubectl krew search` shows it whole


def complaints(name: str, text: str) -> Sequence[str]:
    """What is wrong with the manifest in the file ``name``.yaml; nothing, if krew would take it."""
    return list(_complaints(name, yaml.safe_load(text)))


def _complaints(name: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    if (manifest.get("apiVersion"), manifest.get("kind")) != (VERSION, "Plugin"):
        yield "it is not a Plugin of the version that krew reads"
    if not NAME.fullmatch(name) or manifest.get("metadata") != {"name": name}:
        yield f"its name is not that of its file, {name}"
    spec = manifest.get("spec", {})
    yield from _unknown("spec", spec, SPEC)
    if not SEMANTIC.fullmatch(str(spec.get("version"))):
        yield "spec.version: not a semantic version with a v before it"
    if not str(spec.get("homepage")).startswith("https://"):
        yield "spec.homepage: not an address"
    short = str(spec.get("shortDescription", ""))
    if not 0 < len(short) <= MOST_WORDS or "\n" in short:
        yield "spec.shortDescription: a few words, in one line"
    if not spec.get("description"):
        yield "spec.description: what the plugin does"
    if not spec.get("platforms"):
        yield "spec.platforms: none"
    for platform in spec.get("platforms") or ():
        yield from _of_platform(platform)


def _of_platform(platform: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown("platform", platform, PLATFORM)
    uri = str(platform.get("uri"))
    if not uri.startswith("https://") or not uri.endswith(ARCHIVES):
        yield "uri: not the address of an archive"
    if not SHA256.fullmatch(str(platform.get("sha256"))):
        yield "sha256: not 64 digits"
    if not platform.get("bin"):
        yield "bin: no program"
    if "files" in platform and not platform["files"]:
        yield "files: left out, or not empty"
    selector = platform.get("selector") or {}
    labels = set(selector.get("matchLabels", {}))
    keys = labels | {
        matchexpression.get("key") for matchexpression in selector.get("matchExpressions", ())
    }
    if not keys or not keys <= KEYS:
        yield "selector: by os and arch, and by nothing else"


def _unknown(where: str, given: Mapping[str, Any], known: set[str]) -> Iterator[str]:
    yield from (f"{where}.{field}: krew knows no such field" for field in given.keys() - known)
