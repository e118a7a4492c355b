"""Queues: what Tutti reserves or binds exceeds no limit and starts in no queue that is stopped.

What an administrator changes counts once Tutti has written the status of that generation: before,
it may not know it. Until then the widest limit counts, and what is above a queue in all its
generations. A queue that is new counts at once, and so do the labels of a namespace.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from .audit import AuditEntry
from .charging import Books, Charge
from .findings import Finding, Findings, Promise
from .quantities import format_amount
from .queues import Queue
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Pod, Reservation

Faults = Iterator[tuple[Promise, str]]


def judge_limits(
    steps: Sequence[Step], entries: Sequence[AuditEntry], standpoint: Standpoint
) -> Findings:
    """Replay what queues are charged; a limit exceeded for one moment is a violation."""
    if not any(isinstance(step.after, Queue) for step in steps):
        return Findings()
    books = Books(standpoint.scheduler_name)
    released = _released_by_us(entries, standpoint)
    violations: list[Finding] = []
    unproved: list[Finding] = []
    judged = 0
    for step in steps:
        key = books.gang_of(step)
        old = books.charge(key)
        faults = [*_early_end(step, books, released)]
        books.take(step)
        if _is_judged(step, key, standpoint):
            assert key is not None
            now = books.charge(key)
            judged += bool(now.amounts - old.amounts)
            faults += _faults(step, books, key, old, now)
        for promise, sentence in faults:
            finding = Finding(promise, str(key or _name(step)), sentence, step.revision)
            (violations if step.gap is None else unproved).append(finding)
    return Findings(tuple(violations), unproved=tuple(unproved), judged=judged)


def _is_judged(step: Step, key: Key | None, standpoint: Standpoint) -> bool:
    """Whether Tutti may have done it, which alone writes Reservations, where it matters."""
    if key is None or step.initial or not standpoint.looks_at(key.namespace):
        return False
    return not isinstance(step.after, Pod) or standpoint.bound_by_us(step.after)


def _faults(step: Step, books: Books, key: Key, old: Charge, now: Charge) -> Faults:
    more = now.amounts - old.amounts
    is_start = not old.amounts
    if is_start and isinstance(step.after, Reservation) and (more or step.after.ends):
        yield from _wrong_queue(step.after, books, key)
    for name in books.chain(books.queue_of(key)) if more else ():
        yield from _excess(books, key, more, name)
        if is_start or now.extras - old.extras:
            created = _created(books, key) if is_start else datetime.max.replace(tzinfo=UTC)
            if all(known.stops(created) for known in books.queues[name]):
                verb = "starts" if is_start else "grows"
                yield Promise.STOPS, f"gang {key} {verb}, although queue {name} is stopped"


def _wrong_queue(start: Reservation, books: Books, key: Key) -> Faults:
    """Whether a gang is charged to another queue than it belongs to."""
    if start.queue is None:
        return
    allowed = {name or books.default_of(key.namespace) or "root" for name in books.named[key]}
    if (recorded := start.queue[0]) not in allowed:
        names = ", ".join(sorted(allowed))
        sentence = f"gang {key} starts in queue {recorded}, and it belongs to {names}"
        yield Promise.LIMITS, sentence


def _excess(books: Books, key: Key, more: Counter[str], name: str) -> Faults:
    charged = books.charged(name)
    for resource, limit in books.limits(name).items():
        if more[resource] > 0 and charged[resource] > limit:
            amounts = f"{format_amount(charged[resource])} of {format_amount(limit)} {resource}"
            sentence = f"gang {key} holds more, and queue {name} is then charged {amounts}"
            yield Promise.LIMITS, sentence


def _created(books: Books, key: Key) -> datetime:
    """When the newest was created of the group and the members with which it starts."""
    gang = books.gangs[key]
    newest = [pod.created for pod in (*gang.promised.values(), *gang.held.values())]
    newest += [gang.group.created] if gang.group is not None else []
    moments = [datetime.fromisoformat(at) for at in newest if at]
    return max(moments, default=datetime.min.replace(tzinfo=UTC))


def _name(step: Step) -> str:
    view = step.before or step.after
    return "" if view is None else view.key.name


def _early_end(step: Step, books: Books, released: frozenset[tuple[str, str]]) -> Faults:
    """What is wrong with the end of a queue that Tutti let go."""
    queue = step.before
    if step.after is not None or not isinstance(queue, Queue):
        return
    name = queue.key.name
    if (name, queue.uid) in released and +books.charged(name):
        yield Promise.STOPS, f"queue {name} was let go while gangs were charged to it"


def _released_by_us(
    entries: Sequence[AuditEntry], standpoint: Standpoint
) -> frozenset[tuple[str, str]]:
    """The Queues whose finalizers Tutti was the last to write, by name and uid."""
    last: dict[str, AuditEntry] = {}
    for entry in entries:
        is_queue = entry.resource == "queues" and entry.succeeded
        if is_queue and (entry.verb == "update" or "metadata.finalizers" in entry.fields):
            last[entry.name] = entry
    return frozenset(
        (name, entry.uid) for name, entry in last.items() if entry.user == standpoint.operator_user
    )
