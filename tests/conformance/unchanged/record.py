"""What was recorded, the differences that are meant, and how present answers compare with both.

Both are text files, a line per case, so that git shows what changed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .planner import PARTS, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

RECORD = Path(__file__).with_name("record.txt")
DELIBERATE = Path(__file__).with_name("deliberate")

Key = tuple[str, str]  # a case's name, and a part of its answer


@dataclass(frozen=True)
class Record:
    """Digests by case, and the revision whose answers they are of."""

    revision: str
    cases: Mapping[str, Outcome]


@dataclass
class Defect:
    """A change of plans that is meant, and what they are since."""

    name: str
    because: str
    digests: dict[Key, str] = field(default_factory=dict)


@dataclass
class Verdict:
    """How answers compare with the record; a list for each way in which they can differ."""

    inputs: list[str] = field(default_factory=list)  # cases that are not those recorded
    differing: list[tuple[Key, str]] = field(default_factory=list)  # and the present digest
    stale: list[tuple[Key, str]] = field(default_factory=list)  # as recorded; and the defect

    @property
    def is_good(self) -> bool:
        """Whether nothing differs that is not meant to."""
        return not (self.inputs or self.differing or self.stale)


def read(path: Path) -> Record:
    """Read the record."""
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    (_, revision), *others = lines
    found = {}
    for name, given, *digests in others:
        found[name] = Outcome(name, given, dict(zip(PARTS, digests, strict=True)))
    return Record(revision, found)


def write(revision: str, outcomes: Sequence[Outcome], path: Path) -> None:
    """Write the record, with what the plans come to as a comment."""
    seen = sum((outcome.seen for outcome in outcomes), Counter[str]())
    lines = [f"# name input {' '.join(PARTS)}: digests of what tutti answers at this revision"]
    lines += [f"# {n:6} {what}" for what, n in seen.most_common()]
    lines.append(f"revision {revision}")
    lines += [
        " ".join((outcome.name, outcome.input, *outcome.parts.values())) for outcome in outcomes
    ]
    path.write_text("\n".join(lines) + "\n")


def defects(folder: Path) -> Sequence[Defect]:
    """The changes that are meant, a file each: first why, then case, part and digest."""
    found = []
    for path in sorted(folder.glob("*.txt")):
        because, *lines = path.read_text().splitlines()
        words = (line.split() for line in lines)
        digests = {(name, part): digest for name, part, digest in words}
        found.append(Defect(path.stem, because.removeprefix("# "), digests))
    return found


def write_defect(defect: Defect, folder: Path) -> None:
    """Write a defect's file; one without cases has none."""
    path = folder / f"{defect.name}.txt"
    if not defect.digests:
        path.unlink(missing_ok=True)
        return
    folder.mkdir(exist_ok=True)
    lines = (f"{name} {part} {digest}" for (name, part), digest in sorted(defect.digests.items()))
    path.write_text("\n".join([f"# {defect.because}", *lines]) + "\n")


def judged(known: Record, meant: Iterable[Defect], outcomes: Iterable[Outcome]) -> Verdict:
    """Compare; where several defects name a case, any one's digest will do."""
    listed: dict[Key, dict[str, str]] = {}
    for defect in meant:
        for key, digest in defect.digests.items():
            listed.setdefault(key, {})[digest] = defect.name
    verdict = Verdict()
    for outcome in outcomes:
        before = known.cases.get(outcome.name)
        if before is None or before.input != outcome.input:
            verdict.inputs.append(outcome.name)
            continue
        for part, digest in outcome.parts.items():
            key, wanted = (outcome.name, part), listed.get((outcome.name, part), {})
            if wanted and digest == before.parts[part]:
                verdict.stale.append((key, ", ".join(sorted(wanted.values()))))
            elif digest not in (wanted or {before.parts[part]: ""}):
                verdict.differing.append((key, digest))
    return verdict


def accept(meant: Sequence[Defect], defect: Defect, verdict: Verdict) -> Sequence[Defect]:
    """Put what differs under a defect and nowhere else, and leave out what differs no more."""
    moved = {key for key, _ in (*verdict.differing, *verdict.stale)}
    found = {one.name: one for one in (*meant, defect)}
    if known := next((one for one in meant if one.name == defect.name), None):
        defect = Defect(known.name, defect.because or known.because, known.digests)
        found[defect.name] = defect
    for one in found.values():
        one.digests = {key: digest for key, digest in one.digests.items() if key not in moved}
    defect.digests |= dict(verdict.differing)
    return [*found.values()]
