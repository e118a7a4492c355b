"""The kubectl of the user's PATH, if it fits the demo's API server.

Kubernetes supports kubectl within one minor of the API server:
https://kubernetes.io/releases/version-skew-policy/#kubectl
"""

from __future__ import annotations

import re
import subprocess

SUPPORTED_SKEW = 1
SECONDS = 20.0


def recent_version(server: str) -> str:
    """The version of PATH's kubectl; empty unless it fits an API server of this minor version."""
    try:
        done = subprocess.run(
            ["kubectl", "version", "--client"],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = re.search(r"v(\d+)\.(\d+)\.\S+", done.stdout)
    if version is None:
        return ""
    major, minor = (int(number) for number in server.split("."))
    skew = abs(int(version[2]) - minor)
    return version[0] if int(version[1]) == major and skew <= SUPPORTED_SKEW else ""
