"""Spark applications that are not submitted yet: from properties files to manifests of a gang.

A properties file is no API object: it says what Spark would create.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..inputs import fail, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ... import spark
    from ...dump import Text
    from ...model.cluster import Snapshot


NAMESPACE = "default"
LANGUAGE = "spark.kubernetes.resource.type"
PREFIX = "spark."
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(\.[0-9A-Za-z.-]*)?")


class SparkOptions(NamedTuple):
    """How to read the files: Spark's version, properties that override the files, the namespace."""

    version: str  # empty: the newest
    settings: Sequence[str]  # NAME=VALUE
    namespace: str  # empty: the namespace that each file names


def texts(
    paths: Sequence[str], options: SparkOptions, snapshot: Snapshot, scheduler: str
) -> Sequence[Text]:
    """The applications as manifests, with unused names; a bad file ends the command."""
    from ... import spark
    from ...dump import Text

    version, settings = _version(options.version), dict(_settings(options.settings))
    gang_names = {(gang.key.namespace, gang.key.name) for gang in snapshot.gangs}
    manifests = []
    for path in paths:
        try:
            properties = {**spark.read(_content(path)), **settings}
            app = spark.app(properties, version)
            space = options.namespace or app.namespace or NAMESPACE
            name = spark.gang_name(app, {name for at, name in gang_names if at == space})
            objects = spark.manifests(app, name, space, scheduler)
        except (spark.BadProperties, spark.BadProperty) as problem:
            fail(f"{path}: {problem}")
        if not objects:
            fail(f"{path}: no pod of it goes to {scheduler}: see spark.kubernetes.scheduler.name")
        for sentence in _notes(app, properties, scheduler):
            say(f"{path}: {sentence}", aside=True)
        gang_names.add((space, name))
        whole = {"apiVersion": "v1", "kind": "List", "items": objects}
        manifests.append(Text(path, json.dumps(whole).encode()))
    return manifests


def _content(path: str) -> str:
    from ... import spark

    try:
        return Path(path).read_bytes().decode()
    except UnicodeDecodeError as problem:
        raise spark.BadProperties(f"is not text: byte {problem.start} is no UTF-8") from problem
    except OSError as problem:
        raise spark.BadProperties(problem.strerror or str(problem)) from problem


def _version(text: str) -> spark.Version:
    from ... import spark

    if not text:
        return spark.NEWEST
    match = _VERSION.fullmatch(text)
    if match is None:
        fail(f"--spark-version {text}: write it as 4.0 or 3.5.9")
    return spark.Version(int(match[1]), int(match[2]))


def _settings(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.startswith(PREFIX):
            fail(f"--spark-conf {word}: write it as {PREFIX}name=value")
        yield name, value


def _notes(
    app: spark.SparkApplication, properties: Mapping[str, str], scheduler: str
) -> Iterator[str]:
    """The assumptions behind the answer, where the properties leave something open."""
    parts = [("executors", app.executor)]
    if app.is_client:
        yield "spark.submit.deployMode=client: only its executors are planned"
    else:
        parts.insert(0, ("driver", app.driver))
        if LANGUAGE not in properties:
            yield f"{LANGUAGE} is not set: counted as an application for the JVM"
    for what, pods in parts:
        if pods.scheduler is None:
            yield f"no scheduler is set for the {what}: planned as pods of {scheduler}"
        elif pods.scheduler != scheduler:
            yield f"the scheduler of the {what} is {pods.scheduler}: not planned"
        for name in pods.unknown:
            yield f"{name}: the plan ignores what it adds to the {what}"
    if app.most_executors != app.executors:
        most = "any number" if app.most_executors is None else f"{app.most_executors:,}"
        yield f"{app.executors:,} executors at first; dynamic allocation may ask for {most}"
