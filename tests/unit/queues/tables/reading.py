"""The tables as they are written in ``*.txt``: a case is a line, and its columns are divided by |.

A section begins with its kind and the file of the source, such as ``[starts pkg/a_test.go]``:

    starts   source | queues | nodes | jobs | who starts     [| ours | why]
    shares   source | queues | total | use | thousandths     [| ours | why]
    ends     source | queues | nodes | jobs | who starts or ends   [| ours | why]
    at-once  the same, where all that runs started at once
    divides  source | queues | total by size | wants | gets  [| ours | why]

The source is the test case, in our words. In the other columns, words stand apart by spaces:

    amount   3, or of other resources than GPUs 2cpu+4mem
    queue    name=guaranteed/limit*weight<parent, and ! if it drains; / * and < may be missing
    job      name@queue=members/neededxamount^priority; / x and ^ may be missing;
             #0 if it runs on node 0, ~2 if only the first 2 do, #0,1 if they are on two nodes;
             % if it cannot be ended, ! if it leaves; 9*name for nine
    answer   gang, or gang:members, gang:-1 if one ends,
             with the name of copies if it is open which of them; queue:amount; - for nothing

``ours`` are the answers of which we give one, with "or" between, if they differ, and ``why`` is
the name of a ``Difference``, or of an ``EndDifference``. Lines that begin with # are remarks.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from .differences import Difference, EndDifference
from .scenes import Amounts, Answer, Division, Job, Preemption, Question, Quota, Scene, Use

SECTION = re.compile(r"\[(starts|shares|divides|ends|at-once) (\S+)\]")
AMOUNT = re.compile(r"([\d.]+)([a-z][-\w]*)?")
QUEUE = re.compile(r"([-\w]+)(?:=([^/*<!]+)?)?(?:/([^*<!]+))?(?:\*(\d+))?(?:<([-\w]+))?(!?)")
JOB = re.compile(
    r"(?:(\d+)\*)?([-\w]+)@([-\w]+)=(?:(\d+)(?:/(\d+))?x)?([^#~!%^]+)(?:\^(-?\d+))?(?:#([\d,]+))?(?:~(\d+))?(%?)(!?)"
)


class Case(NamedTuple):
    """A question, the answer of others, and ours where it is another."""

    project: str
    path: str
    name: str
    question: Question
    theirs: Answer
    ours: tuple[Answer, ...]
    why: Difference | EndDifference | None

    def __str__(self) -> str:
        return f"{self.project}: {self.path.rsplit('/', 1)[-1]}: {self.name}"


def cases(folder: str = "") -> Iterator[Case]:
    """All cases of all tables in a folder."""
    for path in sorted((Path(__file__).parent / folder).glob("*.txt")):
        section = None
        for line in path.read_text().splitlines():
            if match := SECTION.fullmatch(line):
                section = match
            elif line and not line.startswith("#"):
                assert section is not None, line
                yield _case(path.stem, section[2], section[1], line)


def _case(project: str, path: str, kind: str, line: str) -> Case:
    name, *columns = (column.strip() for column in line.split("|"))
    assert len(columns) in (4, 6), line
    queues, room, words, theirs, *others = columns
    question, answer = _question(kind, dict(map(_queue, queues.split())), room, words, theirs)
    ours, why = others or ("", "")
    alternatives = tuple(answer(text) for text in ours.split(" or ")) if why else ()
    names = Difference if kind in ("starts", "shares", "divides") else EndDifference
    difference = names[why] if why else None
    return Case(project, path, name, question, answer(theirs), alternatives, difference)


def _question(
    kind: str, queues: Mapping[str, Quota], room: str, words: str, theirs: str
) -> tuple[Question, Callable[[str], Answer]]:
    """The question of a line, and how its answers are read."""
    if kind == "shares":
        uses = {name: _amounts(amount) for name, amount in _pairs(words)}
        return Use(queues, _amounts(room), uses, sorted(_numbers(theirs))), _numbers
    if kind == "divides":
        total, size = room.split(" by ")
        return Division(queues, float(total), _numbers(words), float(size)), _numbers
    jobs = dict(job for word in words.split() for job in _jobs(word))
    assert all(job.queue in queues for job in jobs.values()), words
    nodes = [_amounts(node) for node in room.split()]
    if kind == "starts":
        question: Question = Scene(queues, nodes, jobs)
    else:
        question = Preemption(queues, nodes, jobs, is_at_once=kind == "at-once")
    return question, lambda text: _starts(text, jobs)


def _amounts(text: str) -> Amounts:
    amounts = {}
    for part in text.split("+"):
        match = AMOUNT.fullmatch(part)
        assert match, text
        amounts[match[2] or "gpu"] = float(match[1])
    return amounts


def _queue(text: str) -> tuple[str, Quota]:
    match = QUEUE.fullmatch(text)
    assert match, text
    name, guaranteed, limits, weight, parent, drains = match.groups()
    declared = [_amounts(part) if part else {} for part in (guaranteed, limits)]
    return name, Quota(declared[0], declared[1], int(weight or 1), parent or "", bool(drains))


def _jobs(text: str) -> Sequence[tuple[str, Job]]:
    match = JOB.fullmatch(text)
    assert match, text
    copies, name, queue, members, needed, each, priority, node, running, kept, leaves = (
        match.groups()
    )
    count = int(members or 1)
    nodes = [int(place) for place in (node or "0").split(",")]
    runs = int(running or (len(nodes) if len(nodes) > 1 else count)) if node else 0
    least, rank = int(needed or count), int(priority or 0)
    job = Job(queue, _amounts(each), rank, count, least, runs, nodes, bool(leaves), bool(kept))
    if not copies:
        return [(name, job)]
    return [(f"{name}{n}", job._replace(copies=name)) for n in range(int(copies))]


def _starts(text: str, jobs: Mapping[str, Job]) -> Answer:
    """How many members of each gang start: all that wait, where the text does not say it."""
    words = dict(word.partition(":")[::2] for word in text.split() if word != "-")
    return {
        name: int(members or jobs[name].members - jobs[name].running)
        for name, members in words.items()
    }


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for word in text.split():
        if word != "-":
            name, _, value = word.partition(":")
            yield name, value


def _numbers(text: str) -> Answer:
    return {name: inf if value == "inf" else float(value) for name, value in _pairs(text)}
