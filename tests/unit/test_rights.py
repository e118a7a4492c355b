"""What an audit log tells of the operator's rights: used, denied, never used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.rights import ACCOUNTS, Ledger, Right, faults, granted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BIND = Right("", "pods/binding", "create")
LIST = Right("tutti.dev", "podgroups", "list")
TOLD = [str(BIND), str(LIST)]


def _line(right: Right, user: str = f"{ACCOUNTS}tutti", code: int = 200, **more: Any) -> str:
    resource, _, part = right.resource.partition("/")
    about = {"resource": resource, "apiGroup": right.group, "subresource": part}
    decision = "forbid" if code == 403 else "allow"
    written = {
        "user": {"username": user},
        "verb": right.verb,
        "objectRef": about,
        "responseStatus": {"code": code},
        "annotations": {"authorization.k8s.io/decision": decision},
        **more,
    }
    return json.dumps(written, separators=(",", ":")) + "\n"


def _ledger(tmp_path: Path, *lines: str) -> Ledger:
    log, ledger = tmp_path / "audit.log", Ledger()
    log.write_text("".join(lines))
    ledger.read(log)
    ledger.read(tmp_path / "none.log")
    return ledger


def test_a_right_says_itself_as_kubectl_does() -> None:
    assert TOLD == ["create pods/binding", "list podgroups.tutti.dev"]


def test_what_the_accounts_of_releases_did_counts_and_nobody_elses(tmp_path: Path) -> None:
    discovery = _line(LIST, objectRef=None, requestURI="/apis")
    second = _line(LIST, f"{ACCOUNTS}second-tutti", code=404)
    cut = _line(Right("", "secrets", "get")).rstrip("\n")
    lines = (_line(BIND), _line(Right("", "pods", "delete"), "admin"), discovery, second, cut)
    assert _ledger(tmp_path, *lines).used == {BIND, LIST}


@pytest.mark.parametrize(
    ("code", "is_whole", "told"),
    [
        (201, False, []),
        (201, True, [f"{LIST} is granted and never used"]),
        (409, True, [f"{LIST} is granted and never used"]),
        (403, False, [f"{BIND} was denied"]),
    ],
)
def test_a_fault_is_a_sentence(
    tmp_path: Path, code: int, told: Sequence[str], *, is_whole: bool
) -> None:
    """Only a whole run tells what is never used."""
    ledger = _ledger(tmp_path, _line(BIND, code=code))
    assert faults(ledger, {BIND, LIST}, is_whole=is_whole) == told


def test_what_others_have_granted_is_a_fault(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path, _line(BIND))
    assert faults(ledger, {LIST}, is_whole=False) == [f"{BIND} is not granted by the chart"]


def test_a_worker_of_xdist_sends_what_it_saw(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path, _line(BIND), _line(LIST, code=403))
    whole = Ledger()
    whole.load(json.loads(json.dumps(ledger.dump())))
    assert (whole.used, whole.denied) == (ledger.used, ledger.denied) == ({BIND}, {LIST})


def test_an_account_has_the_rights_of_the_roles_that_are_bound_to_it() -> None:
    def role(kind: str, name: str, right: Right) -> dict[str, Any]:
        rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
        return {"kind": kind, "metadata": {"name": name}, "rules": [rule]}

    def binding(kind: str, name: str) -> dict[str, Any]:
        ref, who = {"kind": kind, "name": name}, [{"name": "tutti"}]
        return {
            "kind": f"{kind}Binding",
            "metadata": {"name": name},
            "roleRef": ref,
            "subjects": who,
        }

    parts = [
        {"kind": "ServiceAccount", "metadata": {"name": "tutti"}},
        role("Role", "tutti", BIND),
        role("ClusterRole", "tutti", LIST),
        role("ClusterRole", "tutti-edit", Right("tutti.dev", "podgroups", "create")),
        binding("Role", "tutti"),
        binding("ClusterRole", "tutti"),
    ]
    assert granted(parts) == {BIND, LIST}
