"""A failing case made small: whatever can go without the failure going, goes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Raw = dict[str, Any]
OPTIONAL = ("affinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "taints")


def shrunk(whole: Raw, fails: Callable[[Raw], bool]) -> Raw:
    """The smallest case on the way that still ``fails``, by one step at a time."""
    current = whole
    while True:
        smaller = next((one for one in _smaller(current) if fails(one)), None)
        if smaller is None:
            return current
        current = smaller


def _smaller(whole: Raw) -> Iterator[Raw]:
    """The case with one thing less."""
    for i in range(len(whole["items"])):
        yield {**whole, "items": whole["items"][:i] + whole["items"][i + 1 :]}
    if "metadata" in whole:
        yield {key: value for key, value in whole.items() if key != "metadata"}
    for i, item in enumerate(whole["items"]):
        for name in OPTIONAL:
            if name in item.get("spec", {}):
                other = copy.deepcopy(whole)
                del other["items"][i]["spec"][name]
                yield other
        for number, container in enumerate(item.get("spec", {}).get("containers", ())):
            for name in (container.get("resources") or {}).get("requests", {}):
                other = copy.deepcopy(whole)
                del other["items"][i]["spec"]["containers"][number]["resources"]["requests"][name]
                yield other
