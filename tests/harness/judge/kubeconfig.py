"""The server and the credentials of a kubeconfig's current context, read without Tutti's code."""

import base64
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Door:
    """Where the API server is, and how to be let in."""

    server: str
    tls: ssl.SSLContext | None
    headers: Mapping[str, str]


def read_door(kubeconfig: Path) -> Door:
    """Read the current context; relative paths are relative to the file, as kubectl has it."""
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    context = _entry(config["contexts"], config["current-context"])["context"]
    cluster = _entry(config["clusters"], context["cluster"])["cluster"]
    user = _entry(config["users"], context["user"])["user"]
    server = str(cluster["server"]).rstrip("/")
    tls = _tls(cluster, user, kubeconfig.parent) if server.startswith("https") else None
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = (kubeconfig.parent / user["tokenFile"]).read_text(encoding="utf-8").strip()
    return Door(server, tls, {"Authorization": f"Bearer {token}"} if token else {})


def _entry(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any], home: Path) -> ssl.SSLContext:
    authority = _bytes(cluster, "certificate-authority", home)
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = (_bytes(user, f"client-{part}", home) for part in ("certificate", "key"))
    if certificate and key:
        # ssl reads a certificate chain from files only.
        with tempfile.NamedTemporaryFile() as both:
            both.write(certificate + b"\n" + key)
            both.flush()
            context.load_cert_chain(both.name)
    return context


def _bytes(entry: Mapping[str, Any], field: str, home: Path) -> bytes | None:
    if entry.get(f"{field}-data"):
        return base64.b64decode(entry[f"{field}-data"])
    return (home / entry[field]).read_bytes() if entry.get(field) else None
