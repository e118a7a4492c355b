"""The engine of selectors in this process: what it answers is known, so it may run here."""

import io
import json

from tutti.filters.devices import environment, selectors
from tutti.model.devices.inventory import Device


def holds(expression: str, device: Device) -> bool:
    """Whether an expression holds for a device, as a process for it would answer."""
    reads: frozenset[selectors.Read] = frozenset()
    answer = io.StringIO()
    for _ in range(2):  # what the expression reads of the device is known after the first
        request = json.dumps([expression, [selectors._seen(reads, device)]])
        environment.serve([request], answer := io.StringIO(), 60.0)
        problem, fields, _ = json.loads(answer.getvalue())
        reads = frozenset(selectors.Read(*field) for field in fields)
    problem, _, (*answers,) = json.loads(answer.getvalue())
    return not problem and answers == [True]
