"""Amounts in words for users: ``500m``, ``16Gi``, ``1 nvidia.com/gpu, 4 cpu``."""

from collections.abc import Mapping

from ..model import ports
from ..model.devices.claims import is_counting, is_counting_sets, selected_by
from ..model.resources import Resources
from ..model.volumes import counted_volumes, counts_volumes

ELLIPSIS = "..."
_BYTES = ("memory", "ephemeral-storage")
_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MOST_DIGITS = 10_000  # an exact figure of five digits or more is shown rounded


def format_amount(name: str, n: int) -> str:
    """One amount of one resource, in its unit of ``Resources``; long figures are rounded down."""
    if name == "cpu":
        return f"{n}m" if n % 1000 else str(n // 1000)
    return _bytes(n) if _is_bytes(name) else str(n)


def quantity(name: str, n: int) -> str:
    """One exact amount of one resource as a Kubernetes quantity, for programs to read."""
    if _is_bytes(name):
        exact, unit = _exact_bytes(n)
        return f"{exact}{unit}"
    return format_amount(name, n)


def format_resources(requests: Resources) -> str:
    """All requests: devices, then cpu and memory, then host ports; without ``pods``."""
    amounts = {
        name: n for name, n in requests.amounts if name != "pods" and not ports.is_port(name)
    }
    ranked = sorted(amounts.items(), key=lambda a: _rank(a[0]))
    listed = [_format_request(name, n) for name, n in ranked]
    return ", ".join((*listed, *map(format_name, _port_names(requests)))) or "no resources"


def format_name(resource: str) -> str:
    """The name of a resource in words for users."""
    if counts_volumes(resource):
        return f"volumes of {counted_volumes(resource)}"
    if is_counting_sets(resource):
        return f"sets of {_either(resource)}"
    if is_counting(resource):
        return f"devices of {_either(resource)}"
    return f"host port {ports.read(resource)}" if ports.is_port(resource) else resource


def listed(requests: Resources) -> Mapping[str, str]:
    """The exact requests by resource, in words for users."""
    countable = ((n, k) for n, k in requests.amounts if not ports.is_port(n))
    amounts = {format_name(n): quantity(n, k) for n, k in countable}
    return {**amounts, **{format_name(name): "1" for name in _port_names(requests)}}


def count(n: int, noun: str) -> str:
    """A number and a noun, in the plural unless the number is 1."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def cut(sentence: str, most: int) -> str:
    """The sentence, cut to ``most`` bytes; an ellipsis marks a cut."""
    raw = sentence.encode()
    if len(raw) <= most:
        return sentence
    return raw[: most - len(ELLIPSIS)].decode(errors="ignore") + ELLIPSIS


def _format_request(name: str, n: int) -> str:
    if counts_volumes(name):
        return f"{count(n, 'volume')} of {counted_volumes(name)}"
    if is_counting_sets(name):
        return f"{count(n, 'set')} of {_either(name)}"
    if is_counting(name):
        return f"{count(n, 'device')} of {_either(name)}"
    return f"{format_amount(name, n)} {name}"


def _either(resource: str) -> str:
    """The selections whose devices a resource counts, in words for users."""
    return " or ".join(selected_by(resource).split("|"))


def _port_names(requests: Resources) -> list[str]:
    return [port.resource for port in ports.named(dict(requests.amounts))]


def _rank(name: str) -> tuple[int, str]:
    usual = ("cpu", "memory")
    if "/" in name:
        return 0, name
    return (1 + usual.index(name) if name in usual else len(usual) + 1), name


def _is_bytes(name: str) -> bool:
    return name in _BYTES or name.startswith("hugepages-")


def _exact_bytes(n: int) -> tuple[int, str]:
    """The amount in the largest unit of which it is a whole number."""
    exact, unit = n, ""
    for larger in _UNITS:
        if exact % 1024 or not exact:
            break
        exact, unit = exact // 1024, larger
    return exact, unit


def _bytes(n: int) -> str:
    exact, unit = _exact_bytes(n)
    if abs(exact) < _MOST_DIGITS:
        return f"{exact}{unit}"
    tenths, unit = n * 10, ""
    for larger in _UNITS:
        if abs(tenths) < 1024 * 10:
            break
        tenths, unit = tenths // 1024, larger
    whole, tenth = divmod(tenths, 10)
    return f"{whole}.{tenth}{unit}" if tenth else f"{whole}{unit}"
