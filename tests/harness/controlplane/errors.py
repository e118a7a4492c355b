"""What can go wrong with the control plane, each with a sentence for a person.

ControlPlaneError
├─ BuildError     a pinned binary could not be built or found
├─ StartError     a process died or did not become ready
├─ RequestError   the API server refused a request; carries the status code
└─ KubectlError   kubectl ended with an error; carries its stderr
"""


class ControlPlaneError(Exception):
    """The control plane cannot do what was asked of it."""


class BuildError(ControlPlaneError):
    """A pinned binary could not be built or found."""


class StartError(ControlPlaneError):
    """A process died or did not become ready."""


class RequestError(ControlPlaneError):
    """The API server refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class KubectlError(ControlPlaneError):
    """kubectl ended with an error; the message is what it said."""
