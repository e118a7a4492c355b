"""One case: the answers about a cluster, and what is wrong with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import judge, reading, restating, running
from .judge import Verdict, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

Raw = dict[str, Any]


def judged(whole: Raw, seed: int = 0, *, explains: bool = True, nudges: bool = True) -> Verdict:
    """Ask for the plan of these objects, in two ways, and for explanations; judge all of it.

    ``explains`` says whether gangs that wait are asked about, ``nudges`` whether the same is judged
    once more where a pod asks for a byte less.
    """
    text = json.dumps(whole)
    try:
        verdict = _judged(whole, text, seed, explains=explains)
        other = restating.nudged(whole, seed) if nudges and not verdict.violations else None
        if other is not None:
            found = _judged(other, json.dumps(other), seed, explains=False).violations
            verdict.violations += [Violation(f"nudged/{kind}", says) for kind, says in found]
    except running.NoAnswerError as problem:
        verdict = Verdict()
        verdict.add("crash", str(problem))
    except reading.NotUnderstoodError as problem:
        return Verdict(skipped=[f"not understood: {problem}"])
    return verdict


def judged_file(text: str) -> Verdict:
    """The same for a file as a user has it, and whether its picture can be drawn."""
    objects = reading.documents(text)
    verdict = judged(as_list(objects))
    try:
        running.picture(text)
    except running.NoAnswerError as problem:
        verdict.add("crash", f"-o picture: {problem}")
    return verdict


def as_list(objects: Sequence[Raw]) -> Raw:
    """The objects of a file as one List."""
    items = [item for item in objects if item["kind"] != reading.HEADER]
    heads = [item["metadata"] for item in objects if item["kind"] == reading.HEADER]
    whole: Raw = {"apiVersion": "v1", "kind": "List", "items": items}
    return {**whole, "metadata": heads[0]} if heads else whole


def _judged(whole: Raw, text: str, seed: int, *, explains: bool) -> Verdict:
    answer = running.plan(text)
    again = running.plan(json.dumps(restating.restated(whole, seed)))
    moment = reading.moment(answer["takenAt"])
    cluster = reading.cluster(reading.documents(text), moment)
    verdict = judge.judged(cluster, answer)
    if again != answer:
        verdict.add("units", f"the plan changes: {_difference(answer, again)}")
    if explains and verdict.is_waiting:
        told = running.explain(text)
        verdict.violations += judge.judged_explanation(cluster, answer, told)
    return verdict


def _difference(before: Raw, after: Raw) -> str:
    for key, value in before.items():
        if key != "gangs" and after[key] != value:
            return f"{key} {value} becomes {after[key]}"
    for one, other in zip(before["gangs"], after["gangs"], strict=True):
        for key, value in one.items():
            if other[key] != value:
                return f"{one['gang']} {key} {value!r} becomes {other[key]!r}"
    return "something"
