"""A grammar of selectors: what a seed, a kind and a number say is one expression.

Nearly all of them compile. Many fail at some device, since attributes are read that only some
devices have, or as what they are not.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from .inventory import FIRMWARE, GPU, LEAST, MODELS, MOST, NIC, RACKS, ROOT, A, C

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ORDERS = ("<", "<=", ">", ">=", "==", "!=")
WHOLE = ("0", "1", "2", "3", "7", "10", "-4", "100", f"{MOST}", f"{LEAST + 1}")
AMOUNTS = (
    *("0", "1", "7", "100m", "1500m", "1.5", "2k", "40e9", "1E", "16Gi", "40Gi", "80Gi", "1.5Gi"),
    *("1536Mi", "100Ti", "0.5Ki", "-1", "12345678", "5n", "1e-3", "+2"),
)
NO_AMOUNTS = ("", "1 Gi", "1gi", "Gi", "1e", "1.2.3", "much", "0x10", "1KiB", "1_000")
VERSIONS = (*FIRMWARE, "2.0.0-rc.2", "1.10.0", "1.10.0-beta", "2.0.0+x", "1.10.0-alpha.2.z")
NO_VERSIONS = ("1.2", "v1.2.3", "01.2.3", "1.2.3-01", "1.2.3-", "", "1.2.3+a..b", "1.2.3.4")
PARTS = ("a", "A", "0", "100", "H100", "-", ",", " ", "ö", "ß", "")
PATTERNS = ("^[A-Z]+[0-9]+$", "100", "(?i)a100", "^$", "[^a-z ]", "ß$", "^.{2}$", r"\\d{3}")


def drawn(seed: int, kind: str, number: int) -> str:
    """The expression of this number."""
    return KINDS[kind](Random(f"{seed} {kind} {number}"))


def _text(r: Random, depth: int = 2) -> str:
    """A string."""
    if depth and r.random() < 0.5:
        inner = _text(r, depth - 1)
        return r.choice(
            (
                f"{inner}.lowerAscii()",
                f"{inner}.upperAscii()",
                f"{inner}.trim()",
                f"{inner}.replace({_quoted(r, PARTS)}, {_quoted(r, PARTS)})",
                f"{inner}.replace({_quoted(r, PARTS)}, {_quoted(r, PARTS)}, {r.randint(-1, 2)})",
                f"{inner}.substring({r.randint(0, 3)})",
                f"{inner}.substring({r.randint(0, 2)}, {r.randint(1, 4)})",
                f"{inner}.charAt({r.randint(0, 4)})",
                f"({inner} + {_text(r, depth - 1)})",
                f"{inner}.split({_quoted(r, PARTS)}).join({_quoted(r, PARTS)})",
                f"string({_integer(r, depth - 1)})",
                f"({_truth(r, depth - 1)} ? {inner} : {_quoted(r, MODELS)})",
            )
        )
    return r.choice(
        (
            f"{A}.model",
            f"{A}.model",
            f'{A}["model"]',
            "device.driver",
            f"{A}.rack",
            f'{A}.?rack.orValue("{r.choice(RACKS) or "none"}")',
            f'device.attributes["{ROOT}"].pcieRoot',
            _quoted(r, MODELS),
        )
    )


def _integer(r: Random, depth: int = 2) -> str:
    """An int."""
    if depth and r.random() < 0.5:
        return r.choice(
            (
                f"({_integer(r, depth - 1)} {r.choice('+-*/%')} {_integer(r, depth - 1)})",
                f"(-{_integer(r, depth - 1)})",
                f"size({_text(r, depth - 1)})",
                f"{_text(r, depth - 1)}.size()",
                f"{_text(r, depth - 1)}.indexOf({_quoted(r, PARTS)})",
                f"{_text(r, depth - 1)}.lastIndexOf({_quoted(r, PARTS)})",
                f"{_quantity(r, depth - 1)}.compareTo({_quantity(r, depth - 1)})",
                f"{_quantity(r, depth - 1)}.asInteger()",
                f"sign({_quantity(r, depth - 1)})",
                f"{_version(r)}.{r.choice(('major', 'minor', 'patch'))}()",
                f"{_version(r)}.compareTo({_version(r)})",
                f"({_truth(r, depth - 1)} ? {_integer(r, depth - 1)} : {r.choice(WHOLE)})",
            )
        )
    return r.choice((f"{A}.index", f"{A}.index", f"{A}.large", f'{A}["index"]', r.choice(WHOLE)))


def _quantity(r: Random, depth: int = 1) -> str:
    """A quantity; what is added comes first, as only then kube-scheduler compares it by ``==``."""
    if depth and r.random() < 0.3:
        other = r.choice((_quantity(r, 0), r.choice(WHOLE)))
        return f"{_quantity(r, depth - 1)}.{r.choice(('add', 'sub'))}({other})"
    return r.choice(
        (
            f"{C}.memory",
            f"{C}.memory",
            f"{C}.cores",
            f'{C}["cores"]',
            f"{C}.?memory.orValue({_amount(r)})",
            _amount(r),
        )
    )


def _amount(r: Random) -> str:
    return f"quantity({_quoted(r, AMOUNTS)})"


def _version(r: Random) -> str:
    """A semantic version."""
    return r.choice((f"{A}.firmware", f"{A}.firmware", f"semver({_quoted(r, VERSIONS)})"))


def _truth(r: Random, depth: int = 1) -> str:
    """A bool."""
    return r.choice(tuple(KINDS.values())[:-1])(r) if depth else f"{A}.healthy"


def _quoted(r: Random, among: Sequence[str]) -> str:
    return f'"{r.choice(among)}"'


def _attributes(r: Random) -> str:
    one = r.choice((f"{A}.mixed", f"{A}.model", f"{A}.index", f"{A}.healthy", f"{A}.rack"))
    value = r.choice(('"1"', "1", "true", "1.0", "false", '"A100"', "3", '"r1"', "0", '""'))
    return r.choice(
        (
            f"{one} {r.choice(('==', '!='))} {value}",
            f"{value} {r.choice(('==', '!='))} {one}",
            f"{one} {r.choice(ORDERS)} {value}",
            one,
            f"!{one}",
        )
    )


def _quantities(r: Random) -> str:
    one, other = _quantity(r), _quantity(r)
    return r.choice(
        (
            f"{one}.compareTo({other}) {r.choice(ORDERS)} {r.choice((-1, 0, 1))}",
            f"{one}.isGreaterThan({other})",
            f"{one}.isLessThan({other})",
            f"{one} == {_quantity(r, 0)}",
            f"{one} != {_quantity(r, 0)}",
            f"{one}.asInteger() {r.choice(ORDERS)} {_integer(r, 1)}",
            f"{one}.isInteger()",
            f"sign({one}) == {r.choice((-1, 0, 1))}",
            f"{one}.asApproximateFloat() {r.choice(ORDERS)} {r.choice(('0.1', '1.5', '4e10'))}",
            f"isQuantity({_quoted(r, (*AMOUNTS, *NO_AMOUNTS))}) == {A}.healthy",
            f"sign(quantity({_quoted(r, NO_AMOUNTS)})) == 0 || {A}.healthy",
        )
    )


def _versions(r: Random) -> str:
    one, other = _version(r), _version(r)
    part = r.choice(("major", "minor", "patch"))
    return r.choice(
        (
            f"{one}.compareTo({other}) {r.choice(ORDERS)} 0",
            f"{one}.isGreaterThan({other})",
            f"{one}.isLessThan({other})",
            f"{one} {r.choice(('==', '!='))} {other}",
            f"{one}.{part}() {r.choice(ORDERS)} {r.choice((0, 1, 2, 9, 10))}",
            f"isSemver({_quoted(r, (*VERSIONS, *NO_VERSIONS))}) == {A}.healthy",
            f"semver({_quoted(r, NO_VERSIONS)}).major() == 1 || {A}.healthy",
        )
    )


def _strings(r: Random) -> str:
    one = _text(r)
    return r.choice(
        (
            f"{one}.startsWith({_quoted(r, PARTS)})",
            f"{one}.endsWith({_quoted(r, PARTS)})",
            f"{one}.contains({_quoted(r, PARTS)})",
            f"{one}.matches({_quoted(r, PATTERNS)})",
            f"{one} {r.choice(ORDERS)} {_text(r, 1)}",
            f"size({one}) {r.choice(ORDERS)} {r.choice(WHOLE)}",
            f"{one}.split({_quoted(r, PARTS)}).size() {r.choice(ORDERS)} {r.choice((1, 2, 3))}",
            f"{one}.split({_quoted(r, PARTS)}, {r.randint(-1, 3)})[0] == {_quoted(r, PARTS)}",
        )
    )


def _optionals(r: Random) -> str:
    name = r.choice(("rack", "model", "mixed", "nothing"))
    one = r.choice(
        (
            f"{A}.?{name}",
            f'{A}[?"{name}"]',
            f'device.attributes[?"{GPU}"].?{name}',
            f'device.attributes[?"no.example.com"].?{name}',
        )
    )
    value = _quoted(r, [rack or "none" for rack in RACKS])
    return r.choice(
        (
            f"{one}.hasValue()",
            f"{one}.orValue({value}) == {value}",
            f"{one}.or({A}.?model).hasValue()",
            f"{one}.value() == {value}",
            f"{one}.optMap(v, v == {value}).orValue({r.choice(('true', 'false'))})",
            f"{C}.?{name}.orValue({_amount(r)}).isGreaterThan({_amount(r)})",
        )
    )


def _presence(r: Random) -> str:
    name = r.choice(("rack", "model", "mixed", "nothing"))
    domain = r.choice((GPU, NIC, ROOT, "no.example.com"))
    there = r.choice(
        (
            f'has(device.attributes["{domain}"].{name})',
            f'"{name}" in device.attributes["{domain}"]',
            f'has(device.capacity["{domain}"].memory)',
            f'"cores" in device.capacity["{domain}"]',
        )
    )
    return r.choice(
        (
            there,
            f"!({there})",
            f"has({A}.rack) && {A}.rack == {_quoted(r, [rack or '' for rack in RACKS])}",
            f"{there} || {A}.index {r.choice(ORDERS)} 3",
            f"{there} ? {A}.healthy : {A}.index > 2",
        )
    )


def _lists(r: Random) -> str:
    numbers = ", ".join(r.sample(WHOLE, r.randint(1, 5)))
    words = ", ".join(_quoted(r, (*MODELS, *PARTS)) for _ in range(r.randint(1, 4)))
    macro = r.choice(("all", "exists", "exists_one"))
    return r.choice(
        (
            f"{_integer(r, 1)} in [{numbers}]",
            f"{_text(r, 1)} in [{words}]",
            f"{A}.mixed in [{words}]",
            f"[{numbers}].{macro}(n, n {r.choice(ORDERS)} {_integer(r, 1)})",
            f"[{words}].{macro}(w, {_text(r, 1)}.contains(w))",
            f"[{numbers}].map(n, n + {A}.index).exists(n, n == {r.choice(WHOLE)})",
            f"[{numbers}].filter(n, n > {A}.index).size() {r.choice(ORDERS)} {r.randint(0, 3)}",
            f"[{numbers}].map(n, n % 2 == 0, n / 2) == [{r.choice(WHOLE)}]",
            f"[{words}][{A}.index] == {_text(r, 1)}",
            f"([{words}] + [{A}.model]).size() > {r.randint(1, 4)}",
            f"[{numbers}].{macro}(n, {_integer(r, 1)} / n {r.choice(ORDERS)} 1)",
        )
    )


def _maps(r: Random) -> str:
    macro = r.choice(("all", "exists", "exists_one"))
    table = f'{{"A100": {r.choice(WHOLE)}, "H100": 2, "L4": {r.choice(WHOLE)}}}'
    return r.choice(
        (
            f"{table}[{A}.model] {r.choice(ORDERS)} {_integer(r, 1)}",
            f"{A}.model in {table}",
            f"{table}[?{A}.model].orValue(0) == {A}.index",
            f"{A}.{macro}(k, k.startsWith({_quoted(r, ('m', 'r', 'he', 'z'))}))",
            f"{C}.{macro}(k, {C}[k].isGreaterThan({_amount(r)}))",
            f"{table}.{macro}(k, {A}.model == k)",
            f"size({A}) {r.choice(ORDERS)} {r.randint(5, 8)}",
            f"{A}.map(k, size(k)).exists(n, n > {r.randint(4, 8)})",
            f"{C}.filter(k, sign({C}[k]) > 0).size() == {r.randint(0, 2)}",
        )
    )


def _ternaries(r: Random) -> str:
    return (
        f"{_truth(r)} ? {r.choice((_attributes, _strings, _versions))(r)}"
        f" : {r.choice((_quantities, _presence, _arithmetic))(r)}"
    )


def _arithmetic(r: Random) -> str:
    return r.choice(
        (
            f"{_integer(r)} {r.choice(ORDERS)} {_integer(r)}",
            f"{A}.large {r.choice('+-*')} {r.choice(WHOLE)} {r.choice(ORDERS)} {A}.index",
            f"{A}.large {r.choice('/%')} {A}.index == {r.choice(WHOLE)}",
            f"double({A}.index) * 0.5 {r.choice(ORDERS)} {r.choice(('1.0', '3.5', '-2.0'))}",
            f"1.0 / double({A}.index) > {r.choice(('0.0', '0.5', '100.0'))}",
            f"uint({A}.index) {r.choice('+-*/%')} {r.choice((0, 1, 2))}u == {r.choice((0, 3))}u",
            f"{A}.index {r.choice(ORDERS)} {r.choice(('2.5', '3.0', '3u', '10u', '0.0'))}",
        )
    )


def _drivers(r: Random) -> str:
    driver = r.choice((GPU, NIC, "no.example.com"))
    return r.choice(
        (
            f'device.driver == "{driver}" && {_attributes(r)}',
            f'device.driver != "{driver}" || {_strings(r)}',
            f'device.driver == "{driver}" ? {_lists(r)} : {_presence(r)}',
            f'device.driver in ["{driver}", "other"]',
            f"device.driver.startsWith({_quoted(r, ('gpu', 'nic', '', 'x'))})",
            f"!device.allowMultipleAllocations && {A}.healthy",
        )
    )


def _conversions(r: Random) -> str:
    return r.choice(
        (
            f"int({_quoted(r, ('1', '-7', '007', '+3', '10', '64'))}) {r.choice(ORDERS)} {A}.index",
            f"int({r.choice(('1.9', '-1.9', '1e9', '2u'))}) {r.choice(ORDERS)} {A}.index",
            f"string({A}.mixed) == {_quoted(r, ('1', 'true', '', '0'))}",
            f"bool({_quoted(r, ('true', 'T', '1', 'false', 'f', 'False'))}) == {A}.healthy",
            f"string({A}.healthy) == {_quoted(r, ('true', 'True', 'false'))}",
            f"double({_quoted(r, ('1.5', '1e2', '-3', 'inf'))}) > double({A}.index)",
            f"dyn({A}.mixed) == {r.choice(('1', 'true', '1u', '1.0'))}",
        )
    )


def _bindings(r: Random) -> str:
    return r.choice(
        (
            f"cel.bind(gpu, {A}, gpu.healthy && gpu.index {r.choice(ORDERS)} {r.choice(WHOLE)})",
            f"cel.bind(m, {A}.model, m.startsWith({_quoted(r, PARTS)}) || size(m) > 4)",
            f"cel.bind(q, {C}.memory, q.isLessThan({_amount(r)}) && sign(q) == 1)",
            f"cel.bind(i, {A}.index, [1, 2, 3].exists(n, n == i))",
        )
    )


def _mixtures(r: Random) -> str:
    one, other = _truth(r), _truth(r)
    return r.choice((f"({one}) && ({other})", f"({one}) || ({other})", f"!({one}) || ({other})"))


KINDS: Mapping[str, Callable[[Random], str]] = {
    "attributes": _attributes,
    "quantities": _quantities,
    "versions": _versions,
    "strings": _strings,
    "optionals": _optionals,
    "presence": _presence,
    "lists": _lists,
    "maps": _maps,
    "arithmetic": _arithmetic,
    "drivers": _drivers,
    "conversions": _conversions,
    "bindings": _bindings,
    "ternaries": _ternaries,
    "mixtures": _mixtures,
}
