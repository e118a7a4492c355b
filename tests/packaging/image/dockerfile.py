"""A Dockerfile of five instructions, read: FROM, COPY, RUN, USER and ENTRYPOINT.

Whatever else it says is refused, since nothing here would carry it out.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, replace

_FROM = re.compile(
    r"(?P<name>[a-z./-]+):(?P<suite>[a-z]+)-(?P<date>\d{8})-slim@sha256:(?P<digest>[0-9a-f]{64})"
    r"(?:\s+AS\s+(?P<stage>[a-z]+))?",
    re.IGNORECASE,
)
_USER = re.compile(r"(\d+):(\d+)")


class DockerfileError(Exception):
    """The Dockerfile says something that cannot be carried out here; one sentence."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Files of the context, or of an earlier stage, into a folder."""

    sources: tuple[str, ...]
    folder: str
    stage: str = ""

    def __str__(self) -> str:
        return " ".join(["COPY", *self.sources, self.folder])


@dataclass(frozen=True, slots=True)
class Run:
    """A line for the shell, as it is written."""

    line: str

    def __str__(self) -> str:
        return f"RUN {self.line}"


@dataclass(frozen=True, slots=True)
class Stage:
    """One FROM and what follows it."""

    name: str
    suite: str  # Debian's name of the release
    digest: str
    steps: tuple[Copy | Run, ...] = ()
    user: tuple[int, int] = (0, 0)
    entrypoint: tuple[str, ...] = ()


def read(text: str) -> list[Stage]:
    """The stages, in order.

    Raises:
        DockerfileError: it says anything else than the five instructions, in forms known here.
    """
    stages: list[Stage] = []
    for word, rest in _instructions(text):
        if word == "FROM":
            stages.append(_from(rest, len(stages)))
            continue
        if not stages:
            raise DockerfileError(f"{word} stands before the first FROM")
        stages[-1] = _with(stages[-1], word, rest, {stage.name for stage in stages[:-1]})
    if not stages or not stages[-1].entrypoint:
        raise DockerfileError("there is no ENTRYPOINT")
    return stages


def _instructions(text: str) -> list[tuple[str, str]]:
    """Word and rest of each; comments go, lines that end in a backslash are joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    parts = [line.strip().partition(" ") for line in whole.splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in parts]


def _from(rest: str, number: int) -> Stage:
    found = _FROM.fullmatch(rest)
    if found is None:
        raise DockerfileError(f"FROM {rest}: not a dated slim image pinned by its digest")
    return Stage(found["stage"] or str(number), found["suite"], found["digest"])


def _with(stage: Stage, word: str, rest: str, earlier: set[str]) -> Stage:
    """The stage with one more instruction."""
    if stage.user != (0, 0) and word in ("RUN", "COPY"):
        raise DockerfileError(f"{word} {rest}: stands behind USER, whose rights it would have")
    match word:
        case "RUN" if not rest.startswith(("[", "--", "<<")):
            return replace(stage, steps=(*stage.steps, Run(rest)))
        case "COPY":
            return replace(stage, steps=(*stage.steps, _copy(rest, earlier)))
        case "USER" if found := _USER.fullmatch(rest):
            return replace(stage, user=(int(found[1]), int(found[2])))
        case "ENTRYPOINT" if rest.startswith("["):
            return replace(stage, entrypoint=tuple(json.loads(rest)))
    raise DockerfileError(f"{word} {rest}: not among what is carried out here")


def _copy(rest: str, earlier: set[str]) -> Copy:
    words, stage = shlex.split(rest), ""
    if words and words[0].startswith("--from="):
        stage = words.pop(0).removeprefix("--from=")
        if stage not in earlier:
            raise DockerfileError(f"COPY {rest}: there is no earlier stage {stage!r}")
    *sources, folder = words or [""]
    if not sources or any(word.startswith("--") for word in words) or not folder.endswith("/"):
        raise DockerfileError(f"COPY {rest}: only into a folder, whose name ends with /")
    return Copy(tuple(sources), folder, stage)
