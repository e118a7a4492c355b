"""What takes long is worked out once for each version, also for those who ask at the same time."""

import asyncio

from tutti.console.latest import Latest
from tutti.console.observation import Observation

from ...harness.builders import snapshot


async def test_those_who_ask_at_the_same_time_get_the_same_answer() -> None:
    versions: list[int] = []

    def function(observation: Observation) -> int:
        versions.append(observation.version)
        return observation.version

    latest = Latest(function)
    old, new = (Observation(version, snapshot()) for version in (1, 2))
    answers = [*await asyncio.gather(latest.of(old), latest.of(old), latest.of(new))]
    assert answers == [1, 1, 2]
    assert versions == [1, 2]
