"""The process that evaluates expressions, but in this one."""

import io
import json
import resource
import signal
import sys

import pytest

from tutti.filters.devices import environment


def test_it_limits_itself_and_answers_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    monkeypatch.setattr(sys, "argv", ["", "60.0", "1000000"])
    requests = (["1 > 0", []], ["1 > 0", [["a", False, [], []]]], ["1 +", []])
    monkeypatch.setattr(
        sys, "stdin", io.StringIO("".join(f"{json.dumps(of)}\n" for of in requests))
    )
    monkeypatch.setattr(sys, "stdout", answers := io.StringIO())
    before = signal.getsignal(signal.SIGINT)
    environment.main()
    assert signal.signal(signal.SIGINT, before) is signal.SIG_IGN
    assert limits == {resource.RLIMIT_CORE: (0, 0), resource.RLIMIT_DATA: (10**6, 10**6)}
    begun, *others = answers.getvalue().splitlines()
    assert begun == ""
    assert [*map(json.loads, others)] == [
        ["", [], []],
        ["", [], [True]],
        ["a CEL expression not compiled", [], []],
    ]
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_a_function_that_lacks_memory_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", raised.append)

    def lacking(_text: str) -> int:
        raise MemoryError

    assert environment._called(len, "abc") == 3
    with pytest.raises(MemoryError):
        environment._called(lacking, "abc")
    assert raised == [signal.SIGABRT]
