"""CEL selectors as Kubernetes evaluates them, and what Tutti says of those that it cannot."""

import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from tests.unit.filters.devices.in_process import holds
from tutti.filters.devices import selectors
from tutti.filters.devices.selectors import FATAL, TOO_LARGE, TOO_MANY, TOO_SLOW, Read
from tutti.model.devices.inventory import Attribute, Capacity, Device, DeviceId

GPU = "gpu.example.com"
DEVICE = Device(
    DeviceId(GPU, "n1", "gpu-0"),
    (
        Attribute(GPU, "healthy", value=True),
        Attribute(GPU, "index", 3),
        Attribute(GPU, "model", "A100"),
        Attribute(GPU, "version", "1.20.3-rc.1", is_version=True),
    ),
    (Capacity(GPU, "memory", "80Gi"),),
)
MODEL, MEMORY = f'device.attributes["{GPU}"].model', f'device.capacity["{GPU}"].memory'
SINCE = f'device.attributes["{GPU}"].version'

HOLDS = (
    f'device.driver == "{GPU}"',
    f'{MODEL} == "A100"',
    f"device . attributes [ '{GPU}' ] . model == 'A100'",
    f'device.attributes["{GPU}"]["model"] == "A100"',
    f'"index" in device.attributes["{GPU}"]',
    f'has(device.attributes["{GPU}"].model)',
    f'device.attributes[?"{GPU}"].?model.orValue("x") == "A100"',
    'sign(device.capacity[?"other.example.com"].?memory.orValue(quantity("0"))) == 0',
    '!has(device.attributes["other.example.com"].model)',
    f'device.attributes["{GPU}"].?nothing.orValue("x") == "x"',
    f'cel.bind(gpu, device.attributes["{GPU}"], gpu.healthy && gpu.index > 2)',
    f'{MODEL}.lowerAscii().startsWith("a1") && {MODEL}.matches("^A[0-9]+$")',
    f'{MEMORY}.compareTo(quantity("80Gi")) == 0',
    f'{MEMORY} == quantity("81920Mi")',
    f'{MEMORY}.isGreaterThan(quantity("79Gi")) && {MEMORY}.isLessThan(quantity("1Ti"))',
    f'{SINCE}.isLessThan(semver("1.20.3")) && {SINCE}.major() == 1',
    "!device.allowMultipleAllocations",
    f'"device.nothing" != "" && device.driver == "{GPU}" // device',
    "[1, 2, 3].all(n, n > 0)",
    f'{MODEL}.substring(1, 4) == "100" && {MODEL}.substring(4) == "" // .substring(9)',
    f'{MODEL}.replace("0", "1") == "A111" && {MODEL}.replace("0", "1", 1) == "A110"',
    f'{MODEL}.replace("0", "", 0) == "A100" && {MODEL}.replace("", "-", 2) == "-A-100"',
    f'{MODEL}.replace("0", "", -1) == "A1" && {MODEL}.replace("", "-") == "-A-1-0-0-"',
    f'{MODEL}.split("0") == ["A1", "", ""] && {MODEL}.split("0", 2) == ["A1", "0"]',
    f'{MODEL}.split("0", 0).size() == 0 && {MODEL}.split("0", -1).size() == 3',
    f'{MODEL}.split("") == ["A", "1", "0", "0"] && {MODEL}.split("", 2) == ["A", "100"]',
    f'{MODEL}.split("", 4).size() == 4 && {MODEL}.split("", 0) == []',
    f'["a", {MODEL}].join("/") == "a/A100" && {MODEL}.split("0").join() == "A1"',
    f'"{MODEL[-5:]}.substring(9)" != "" && {MODEL}.substring(0, 1) == "A"',
)
FAILS = (
    'device.driver == "other"',
    f'{MODEL} == "H100"',
    'device.attributes["other.example.com"].model == "A100"',  # no such key
    f"{MODEL} > 3",  # no such overload
    MODEL,  # no truth value
    f'{MEMORY}.isGreaterThan(semver("1.0.0"))',
    'quantity("much") == quantity("1")',
    f'"x".matches("(") && device.driver == "{GPU}"',
)


@pytest.mark.parametrize("expression", HOLDS)
def test_it_holds(expression: str) -> None:
    assert holds(expression, DEVICE)
    assert selectors.selector(expression).problem == ""
    assert selectors.matches([expression], DEVICE)


@pytest.mark.parametrize("expression", FAILS)
def test_it_does_not_hold_or_fails(expression: str) -> None:
    assert not holds(expression, DEVICE)
    assert selectors.selector(expression).problem == ""
    assert not selectors.matches([expression], DEVICE)


def test_all_expressions_must_hold() -> None:
    assert selectors.matches(HOLDS, DEVICE)
    assert not selectors.matches((*HOLDS, FAILS[0]), DEVICE)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ('ip("10.0.0.1").family() == 4', "the CEL function ip"),
        (f'{MODEL}.find("A") == "A"', "the CEL function find"),
        (f"{MEMORY}.sign() == 1", "the CEL function sign"),
        ("1 +", "a CEL expression not compiled"),
        ("device == device", "an expression that uses device without naming a domain"),
        ("device.attributes.exists(d, true)", "an expression that uses device without"),
        (f'device.attributes["{GPU}"].size() == 4', ""),
    ],
)
def test_what_the_engine_lacks_is_named(expression: str, problem: str) -> None:
    assert holds(expression, DEVICE) is (problem == "")
    assert selectors.selector(expression).problem.startswith(problem)
    assert selectors.matches([expression], DEVICE) is (problem == "")


MANY = f"[{', '.join(['1'] * 30)}]"
LOOP = f'{MANY}.all(a, {MANY}.all(b, {MANY}.all(c, device.driver != "x")))'


def test_an_expression_that_loops_too_often_for_the_engine_is_named() -> None:
    assert not holds(LOOP, DEVICE)
    assert selectors.selector(LOOP).problem == "a CEL expression that loops too often"
    assert not selectors.matches([LOOP], DEVICE)


def test_a_device_for_which_it_loops_too_often_is_not_selected() -> None:
    expression = f'device.driver == "{GPU}" && {LOOP}'
    assert not holds(expression, DEVICE)
    assert selectors.selector(expression).problem == ""
    assert not selectors.matches([expression], DEVICE)


def test_an_expression_is_evaluated_once_for_devices_that_are_equal_to_it() -> None:
    expression = f'{MODEL} == "cached"'
    assert selectors.selector(expression).reads == {Read("attributes", GPU, "model")}
    twin = replace(DEVICE, id=DeviceId(GPU, "n2", "gpu-7"), capacity=())
    selectors.evaluate([(of, [DEVICE, twin]) for of in (expression, FAILS[0])], 60.0)
    assert len(selectors.selector(expression).answers) == 1


@pytest.mark.parametrize(
    "expression",
    [
        f'device.attributes["{GPU}"].exists(name, name == "model")',
        f'device.attributes["{GPU}"].size() == 4',
        f'device.attributes["{GPU}"] . map (name, name) == ["model"] || {SINCE}.major() == 1',
    ],
)
def test_a_function_of_a_whole_domain_is_evaluated_for_each_content_of_it(expression: str) -> None:
    assert Read("attributes", GPU) in selectors.selector(expression).reads
    bare = replace(DEVICE, attributes=(Attribute(GPU, "index", 3),))
    assert [selectors.matches([expression], device) for device in (bare, DEVICE)] == [False, True]


@pytest.mark.parametrize(
    "hiding",
    [
        "true // it's\n && {model} == 'A100'",
        "'//' != {model} && '{{' != {model} && {model} == 'A100'",
        '"""\\"""\'""" != {model} && {model} == \'A100\'',
        "'\\'' != {model} && {model} == 'A100'",
    ],
)
def test_no_string_and_no_comment_hides_a_field_of_the_device(hiding: str) -> None:
    expression = hiding.format(model=MODEL)
    assert selectors.selector(expression).reads == {Read("attributes", GPU, "model")}
    other = replace(DEVICE, attributes=(Attribute(GPU, "model", "H100"),))
    assert selectors.matches([expression], DEVICE)
    assert not selectors.matches([expression], other)


@pytest.mark.parametrize("text", ["'device'", '"""device"""', "r'device'", "1 // device"])
def test_strings_and_comments_read_no_device(text: str) -> None:
    assert selectors.selector(f"true || [{text}\n] == []").problem == ""
    assert not selectors.selector(f"true || [{text}\n] == []").reads


def test_true_is_not_one() -> None:
    one = Device(DEVICE.id, (Attribute(GPU, "kind", 1),))
    truth = Device(DEVICE.id, (Attribute(GPU, "kind", value=True),))
    expression = f'device.attributes["{GPU}"].kind == 1'
    assert [selectors.matches([expression], device) for device in (one, truth)] == [True, False]


def test_a_version_that_is_none_makes_every_expression_about_it_fail() -> None:
    odd = Device(DEVICE.id, (Attribute(GPU, "version", "1.2", is_version=True),))
    expression = f'{SINCE}.major() == 1 || device.driver != ""'
    assert not holds(expression, odd)
    assert not selectors.matches([expression], odd)


def test_a_quantity_that_is_none_makes_every_expression_about_it_fail() -> None:
    odd = Device(DEVICE.id, (), (Capacity(GPU, "memory", "much"),))
    assert not selectors.matches([f'{MEMORY} == quantity("1") || device.driver != ""'], odd)


def test_a_shared_device_says_so() -> None:
    shared = replace(DEVICE, unsupported=("allowMultipleAllocations",))
    assert selectors.matches(["device.allowMultipleAllocations"], shared)


def answers(*expressions: str) -> int:
    """How many answers are cached for these expressions."""
    return sum(len(selectors._selectors[of].answers) for of in expressions)


@pytest.fixture(name="cache")
def _cache(monkeypatch: pytest.MonkeyPatch) -> dict[str, selectors.Selector]:
    """An empty cache."""
    cache: dict[str, selectors.Selector] = {}
    monkeypatch.setattr(selectors, "_selectors", cache)
    return cache


def indexed(count: int) -> list[Device]:
    return [Device(DEVICE.id, (Attribute(GPU, "index", i),)) for i in range(count)]


def test_the_expressions_that_come_last_are_left_out_if_answers_are_too_many(
    monkeypatch: pytest.MonkeyPatch, cache: dict[str, selectors.Selector]
) -> None:
    monkeypatch.setattr(selectors, "MOST_ANSWERS", 8)
    monkeypatch.setattr(selectors, "LEAST_ANSWERS", 1)
    one, two, three = (f'device.attributes["{GPU}"].index > {i}' for i in range(3))
    devices = indexed(6)
    evaluated = selectors.evaluate([(one, devices), (two, devices), (three, devices)], 60.0)
    assert evaluated.problems == {one: "", two: TOO_MANY, three: TOO_MANY}
    assert (answers(one), [*cache]) == (6, [one, two])
    evaluated = selectors.evaluate([(three, devices), (two, devices[:2])], 60.0)
    assert evaluated.problems == {three: "", two: ""}
    assert ([*cache], answers(two, three)) == ([two, three], 8)
    assert selectors.matches([one], devices[5])


def test_why_expressions_cannot_be_evaluated_is_answered_for_each() -> None:
    wanted = [(HOLDS[0], [DEVICE]), ("ip(1)", [DEVICE])]
    assert selectors.evaluate(wanted, 60.0).problems == {
        HOLDS[0]: "",
        "ip(1)": "the CEL function ip",
    }


def test_it_is_known_whether_devices_have_answers() -> None:
    expression = f'device.attributes["{GPU}"].index > 77'
    assert selectors.lacks_answers(expression, [])
    selectors.evaluate([(expression, indexed(2))], 60.0)
    assert not selectors.lacks_answers(expression, indexed(2))
    assert selectors.lacks_answers(expression, indexed(3))
    assert selectors.selector("1 + 77").problem == ""
    assert selectors.selector("1 + + 77").problem != ""
    assert not selectors.lacks_answers("1 + + 77", indexed(3))


def doubled(start: str, grown: str, end: str, depth: int) -> str:
    """An expression of a few hundred characters whose value has as many parts as 2 to ``depth``."""
    for i in range(depth, 0, -1):
        end = f"cel.bind(x{i}, {grown.format(x=f'x{i - 1}')}, {end})"
    return f"cel.bind(x0, {start}, {end})"


NESTED = doubled("[1, 1]", "[{x}, {x}]", "x24 == x24", 24)
HOSTILE = {
    "lists that double": doubled("[1, 1]", "{x} + {x}", "x24.size() > 0", 24),
    "texts that double": doubled("'ab'", "{x} + {x}", "x26.size() > 0", 26),
    "lists within lists": NESTED,
    "a text of gigabytes": '"{}".replace("a", "{}").replace("b", "{}").size() > 0'.format(
        "a" * 1500, "b" * 2500, "c" * 2500
    ),
    "loops within loops": f"{MANY}.all(a, {MANY}.all(b, {NESTED}))",
    "deep nesting": "(" * 4000 + "true" + ")" * 4000,
    "deep lists": "[" * 4000 + "]" * 4000 + " == []",
    "many negations": "!" * 9000 + "true",
    "a regular expression that backtracks": f'!"{"a" * 40}".matches("(a*)*b")',
    "a regular expression that is large": 'device.driver.matches("((a{1,900}){1,900}){1,900}")',
    "a comment of quotes": "true //" + '"' + '\\"' * 4900,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_expression_takes_long_or_much_memory(
    kind: str, cache: dict[str, selectors.Selector]
) -> None:
    bad, good = HOSTILE[kind], f'{MODEL} == "A100"'
    before, begin = psutil.Process().memory_info().rss, time.monotonic()
    wanted = [(good, [DEVICE]), (bad, [DEVICE]), (f"{good} && true", [DEVICE])]
    evaluated = selectors.evaluate(wanted, 60.0)
    assert time.monotonic() - begin < 20.0
    assert psutil.Process().memory_info().rss - before < 2**25
    assert evaluated.problems.keys() == {text for text, _ in wanted}
    assert selectors.matches([good, f"{good} && true"], DEVICE)
    began = list(selectors._engines)
    assert selectors.evaluate(wanted, 60.0) == evaluated
    assert selectors._engines == began
    assert [*cache] == [text for text, _ in wanted]


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("lists that double", TOO_LARGE),
        ("texts that double", TOO_LARGE),
        ("a text of gigabytes", TOO_LARGE),
        ("lists within lists", TOO_SLOW),
        ("loops within loops", TOO_SLOW),
        ("deep nesting", "a CEL expression not compiled"),
        ("a comment of quotes", ""),
    ],
)
def test_what_an_expression_takes_too_much_of_is_named(kind: str, problem: str) -> None:
    assert selectors.selector(HOSTILE[kind]).problem == problem
    assert selectors.matches([HOSTILE[kind]], DEVICE) is (problem == "")


def test_an_expression_that_takes_long_for_some_device_alone_is_refused_as_well() -> None:
    expression = f'device.attributes["{GPU}"].index == 3 ? {NESTED} : true'
    bare = Device(DEVICE.id, (Attribute(GPU, "index", 4),))
    assert selectors.matches([expression], bare)
    assert selectors.lacks_answers(expression, [DEVICE])
    assert selectors.evaluate([(expression, [bare, DEVICE])], 60.0).problems == {
        expression: TOO_SLOW
    }
    assert not selectors.matches([expression], bare)


def test_once_time_is_over_only_what_is_cached_is_answered() -> None:
    known, new = "78 > 1", "79 > 1"
    assert selectors.selector(known).problem == ""
    evaluated = selectors.evaluate([(new, []), (known, [DEVICE])], 0.0)
    assert evaluated == ({}, "", new)
    selectors.evaluate([(known, [DEVICE])], 60.0)
    assert selectors.evaluate([(new, []), (known, [DEVICE])], 0.0) == ({known: ""}, "", new)


def child() -> psutil.Process:
    """The process of the engine."""
    selectors.selector(HOLDS[0])
    selectors._started()
    return psutil.Process(selectors._engines[0]._process.pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_process_that_somebody_ends_is_started_again(number: signal.Signals) -> None:
    before = child()
    before.send_signal(number)
    before.wait(10)
    expression = f"80 > {int(number)}"
    assert selectors.matches([expression], DEVICE)
    assert child().pid != before.pid


class Ending:
    """An engine whose process ends at each request."""

    def __init__(self, code: int, *, has_expired: bool = False) -> None:
        self._code = code
        self.has_expired = has_expired

    def ask(self, _request: bytes) -> None:
        """See ``_Engine``."""
        return

    def end(self) -> int:
        """See ``_Engine``."""
        return self._code


@pytest.mark.parametrize(
    ("code", "problem", "requests"),
    [
        (1, TOO_LARGE, 2),
        (-signal.SIGABRT, TOO_LARGE, 2),
        (-signal.SIGSEGV, FATAL, 2),
        (-signal.SIGPROF, TOO_SLOW, 1),
    ],
)
def test_an_expression_at_which_two_processes_end_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    cache: dict[str, selectors.Selector],
    code: int,
    problem: str,
    requests: int,
) -> None:
    started: list[Ending] = []

    def start() -> Ending:
        started.append(Ending(code))
        return started[-1]

    monkeypatch.setattr(selectors, "_Engine", start)
    monkeypatch.setattr(selectors, "_engines", [])
    assert selectors.evaluate([("81 > 1", [DEVICE])], 60.0) == ({"81 > 1": problem}, "", "")
    assert len(started) == requests
    assert [*cache] == ["81 > 1"]


def test_the_second_process_is_tried_though_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, cache: dict[str, selectors.Selector]
) -> None:
    class Slow(Ending):
        """An engine whose process ends late."""

        def ask(self, _request: bytes) -> None:
            """See ``_Engine``."""
            time.sleep(0.2)

    monkeypatch.setattr(selectors, "_Engine", lambda: Slow(1))
    monkeypatch.setattr(selectors, "_engines", [])
    wanted = [("85 > 1", [DEVICE]), ("86 > 1", [DEVICE])]
    assert selectors.evaluate(wanted, 0.1) == ({"85 > 1": TOO_LARGE}, "", "86 > 1")
    assert [*cache] == ["85 > 1"]


def test_an_expression_is_not_to_blame_if_somebody_kills_the_process(
    monkeypatch: pytest.MonkeyPatch, cache: dict[str, selectors.Selector]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(selectors, "_Engine", lambda: Ending(-signal.SIGKILL))
        patched.setattr(selectors, "_engines", [])
        evaluated = selectors.evaluate([("82 > 1", [DEVICE])], 60.0)
    assert evaluated == ({}, "the process that evaluates them was killed", "82 > 1")
    assert not cache
    assert selectors.matches(["82 > 1"], DEVICE)


@pytest.mark.parametrize(("expired", "is_to_blame"), [((True, True), True), ((True, False), False)])
def test_an_expression_that_two_processes_do_not_answer_in_time_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    cache: dict[str, selectors.Selector],
    *,
    expired: tuple[bool, bool],
    is_to_blame: bool,
) -> None:
    engines = iter(Ending(-signal.SIGKILL, has_expired=has_expired) for has_expired in expired)
    monkeypatch.setattr(selectors, "_Engine", lambda: next(engines))
    monkeypatch.setattr(selectors, "_engines", [])
    evaluated = selectors.evaluate([("87 > 1", [DEVICE])], 60.0)
    assert evaluated.problems == ({"87 > 1": TOO_SLOW} if is_to_blame else {})
    assert bool(cache) is is_to_blame


@pytest.mark.parametrize("program", ["import no_such_module", "raise SystemExit"])
def test_if_no_process_starts_expressions_wait(
    monkeypatch: pytest.MonkeyPatch, cache: dict[str, selectors.Selector], program: str
) -> None:
    monkeypatch.setattr(selectors, "_engines", [])
    monkeypatch.setattr(selectors, "START_SECONDS", 0.1)
    with monkeypatch.context() as patched:
        patched.setattr(selectors, "_PROGRAM", program)
        evaluated = selectors.evaluate([("83 > 1", [DEVICE])], 60.0)
        why = "no process starts that evaluates them (it ended at once)"
        assert evaluated == ({}, why, "83 > 1")
        with pytest.raises(selectors.UnansweredError, match="no process starts"):
            selectors.matches(["83 > 1"], DEVICE)
    assert not cache
    assert selectors.matches(["83 > 1"], DEVICE)
    selectors._engines.pop().end()


STUCK = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"


def test_a_process_that_does_not_answer_is_killed(
    monkeypatch: pytest.MonkeyPatch, cache: dict[str, selectors.Selector]
) -> None:
    assert not cache
    monkeypatch.setattr(selectors, "_engines", [])
    monkeypatch.setattr(selectors, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(selectors, "_PROGRAM", STUCK)
    evaluated = selectors.evaluate([("84 > 1", [DEVICE])], 60.0)
    assert evaluated == ({"84 > 1": TOO_SLOW}, "", "")


def test_a_process_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "START_SECONDS", 0.1)
    monkeypatch.setattr(selectors, "_PROGRAM", STUCK)
    assert selectors._Engine().end() == -signal.SIGKILL


def test_an_answer_that_is_too_long_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = selectors._Engine()
    monkeypatch.setattr(selectors, "_MOST_ANSWERED", 3)
    assert engine.ask(b'["1 > 0", []]\n') is None
    engine.end()
    assert not psutil.pid_exists(engine._process.pid)


HOST = """
import sys
from tutti.filters.devices import selectors
selectors.selector("1 > 0")
print(selectors._engines[0]._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, 0])
def test_the_process_ends_with_its_parent(number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as host:
        assert host.stdin
        assert host.stdout
        own = psutil.Process(int(host.stdout.readline()))
        if number:
            host.send_signal(number)
        host.stdin.close()
    own.wait(10)
    assert not psutil.pid_exists(own.pid)


def test_a_process_that_is_worn_out_changes_no_answer(
    monkeypatch: pytest.MonkeyPatch, cache: dict[str, selectors.Selector]
) -> None:
    """The engine loses some memory at each function of ours that it calls."""
    monkeypatch.setattr(selectors, "_engines", [])
    monkeypatch.setattr(selectors, "MOST_BYTES", 20 * 2**20)
    losing = ", ".join(['quantity("1")'] * 20)
    expression = f'device.attributes["{GPU}"].index >= 0 && [{losing}] != []'
    assert selectors.selector(expression).problem == ""
    first = selectors._engines[0]
    devices = indexed(2000)
    assert selectors.evaluate([(expression, devices)], 60.0).problems == {expression: ""}
    assert len(cache[expression].answers) == 2000
    assert all(cache[expression].answers.values())
    assert selectors._engines != [first]
    selectors._engines[0].end()


def test_the_process_has_little_memory_and_no_other_files() -> None:
    own = child()
    assert own.rlimit(psutil.RLIMIT_DATA) == (selectors.MOST_BYTES, selectors.MOST_BYTES)
    assert own.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert own.memory_info().rss < selectors.MOST_BYTES / 2
    assert own.num_fds() == 3


def test_the_process_is_started_with_the_first_selector_alone() -> None:
    asked = f"""
import sys
import tutti.operator.main
from tutti.filters.devices import selectors
print(len(selectors._engines))
selectors.selector({HOLDS[0]!r})
print(len(selectors._engines), "cel_expr_python" in sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True)
    assert answer.stdout.split() == [b"0", b"1", b"False"]
    assert answer.stderr == b""


def test_a_raw_string_that_ends_with_a_backslash_is_not_compiled() -> None:
    for text in (r"r'\'", r'R"\"', r"r'\\\'", r'r"""\"""', r'br"\"'):
        assert selectors.selector(f"[{text}] != []").problem == "a CEL expression not compiled"
