"""Who leads, when, and what a replica that was paused or cut off believes."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from tutti.kube import errors
from tutti.kube.leader_election import (
    DEADLINE_SECONDS,
    KNOWN_SECONDS,
    LEASE_SECONDS,
    Election,
    NameTaken,
    assert_name_is_free,
)
from tutti.model.decisions import Mode
from tutti.model.keys import Lease


@dataclass
class Shelf:
    """A Lease that several replicas write, as the API server keeps it."""

    lease: Lease = field(default_factory=Lease)
    version: int = 0
    trouble: errors.ApiError | None = None
    loses_answers: bool = False
    log: list[str] = field(default_factory=list)

    async def read_lease(self) -> Lease:
        """See ``Leases.read_lease``."""
        if self.trouble is not None:
            raise self.trouble
        return self.lease

    async def write_lease(self, lease: Lease) -> Lease:
        """See ``Leases.write_lease``."""
        if self.trouble is not None:
            raise self.trouble
        if lease.version != self.lease.version:
            raise errors.Conflict("someone was faster", status=409)
        self.version += 1
        self.lease = replace(lease, version=str(self.version))
        self.log.append(lease.holder)
        if self.loses_answers:
            raise errors.Unavailable("no answer")
        return self.lease


class Replicas:
    """Replicas of one Lease, and the time they share."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.now = 1_000.0
        self.changes = 0

    def add(self, identity: str, mode: Mode = Mode.ACTIVE) -> Election:
        """Start one more."""
        return Election(
            self.shelf,
            identity,
            clock=lambda: self.now,
            monotonic=lambda: self.now,
            changed=self._count,
            mode=mode,
        )

    def _count(self) -> None:
        self.changes += 1


@pytest.fixture
def replicas() -> Replicas:
    return Replicas()


async def test_the_first_to_look_leads_and_the_second_stands_by(replicas: Replicas) -> None:
    one, two = replicas.add("a"), replicas.add("b")
    await one.look()
    await two.look()
    assert one.term == replicas.shelf.lease.term
    assert one.term.startswith("a/")
    assert two.term == ""
    assert one.trouble == two.trouble == ""
    assert replicas.changes == 1


async def test_a_leader_that_renews_is_never_replaced(replicas: Replicas) -> None:
    one, two = replicas.add("a"), replicas.add("b")
    term = ""
    for _ in range(20):
        await one.look()
        await two.look()
        term = term or one.term
        replicas.now += 2.0
    assert (one.term, two.term) == (term, "")
    assert replicas.shelf.lease.transitions == 0


async def test_a_silent_leader_is_replaced_once_the_lease_has_run_out(replicas: Replicas) -> None:
    one, two = replicas.add("a"), replicas.add("b")
    await one.look()
    await two.look()
    replicas.now += LEASE_SECONDS
    await two.look()
    assert two.term == ""
    replicas.now += 1.0
    await two.look()
    assert two.term.startswith("b/")
    assert not two.follows_resignation, "its calls may be on their way"
    assert replicas.shelf.lease.transitions == 1


async def test_silence_is_measured_from_the_first_look_not_from_the_leases_own_times(
    replicas: Replicas,
) -> None:
    """Clocks of two machines may differ by hours."""
    one = replicas.add("a")
    await one.look()
    replicas.now += 10_000.0
    two = replicas.add("b")
    await two.look()
    assert two.term == ""


async def test_a_paused_leader_learns_at_its_next_look_that_it_leads_no_more(
    replicas: Replicas,
) -> None:
    one, two = replicas.add("a"), replicas.add("b")
    await one.look()
    await two.look()
    replicas.now += LEASE_SECONDS + 1.0
    await two.look()
    await one.look()
    assert one.term == ""
    assert two.term == replicas.shelf.lease.term


async def test_a_restarted_container_takes_a_new_term_at_once(replicas: Replicas) -> None:
    before = replicas.add("a")
    await before.look()
    replicas.now += 0.5
    again = replicas.add("a")
    await again.look()
    assert again.term.startswith("a/")
    assert again.term != before.term


async def test_two_that_share_an_identity_by_mistake_do_not_take_turns(replicas: Replicas) -> None:
    one, two = replicas.add("a"), replicas.add("a")
    await one.look()
    replicas.now += 0.5
    await two.look()
    for _ in range(3):
        replicas.now += 2.0
        await one.look()
        await two.look()
    assert one.term == ""
    assert two.term == replicas.shelf.lease.term


async def test_a_leader_that_cannot_renew_stands_down_before_anyone_may_take_over(
    replicas: Replicas,
) -> None:
    one = replicas.add("a")
    await one.look()
    replicas.shelf.trouble = errors.Unavailable("away.")
    replicas.now += DEADLINE_SECONDS
    await one.look()
    assert one.term != ""
    assert "away" in one.trouble
    replicas.now += 0.5
    await one.look()
    assert one.term == ""
    assert DEADLINE_SECONDS < LEASE_SECONDS


async def test_it_leads_again_under_a_new_term_when_the_server_is_back(replicas: Replicas) -> None:
    one = replicas.add("a")
    await one.look()
    first = one.term
    replicas.shelf.trouble = errors.Unavailable("away.")
    replicas.now += LEASE_SECONDS + 1.0
    await one.look()
    replicas.shelf.trouble = None
    await one.look()
    assert one.term not in ("", first)


async def test_an_acquisition_whose_answer_was_lost_is_taken_up_at_the_next_look(
    replicas: Replicas,
) -> None:
    one = replicas.add("a")
    replicas.shelf.loses_answers = True
    await one.look()
    assert one.term == ""
    replicas.shelf.loses_answers = False
    replicas.now += 2.0
    await one.look()
    assert one.term == replicas.shelf.lease.term


async def test_a_lease_given_back_is_free_at_once(replicas: Replicas) -> None:
    one, two = replicas.add("a"), replicas.add("b")
    await one.look()
    await two.look()
    await one.resign()
    assert one.term == ""
    replicas.now += 0.1
    await two.look()
    assert two.term.startswith("b/")
    assert two.follows_resignation
    assert not one.follows_resignation, "nobody led before"


async def test_a_standby_gives_nothing_back(replicas: Replicas) -> None:
    one, two = replicas.add("a"), replicas.add("b")
    await one.look()
    await two.look()
    await two.resign()
    assert replicas.shelf.log == ["a"]


async def test_resigning_from_a_server_that_is_away_harms_nobody(replicas: Replicas) -> None:
    one = replicas.add("a")
    await one.look()
    replicas.shelf.trouble = errors.Unavailable("away.")
    await one.resign()
    assert one.term == ""


async def test_resigning_from_a_server_that_does_not_answer_ends(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process has a few seconds until it is killed."""
    loop, passed = asyncio.get_running_loop(), 0.0
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + passed)
    one = replicas.add("a")
    await one.look()

    async def hang(lease: Lease) -> Lease:
        nonlocal passed
        passed += DEADLINE_SECONDS
        await asyncio.Event().wait()
        return lease

    monkeypatch.setattr(replicas.shelf, "write_lease", hang)
    async with asyncio.timeout(2 * DEADLINE_SECONDS):
        await one.resign()
    assert one.term == ""


async def test_who_writes_second_waits(replicas: Replicas) -> None:
    one, two = replicas.add("a"), replicas.add("b")
    seen = replicas.shelf.lease
    await one.look()
    current, replicas.shelf.lease = replicas.shelf.lease, seen  # what ``two`` read before

    write = replicas.shelf.write_lease

    async def late(lease: Lease) -> Lease:
        replicas.shelf.lease = current
        return await write(lease)

    replicas.shelf.write_lease = late  # type: ignore[method-assign]
    await two.look()
    assert (two.term, two.trouble) == ("", "")
    assert replicas.shelf.lease.holder == "a"


class SlowShelf(Shelf):
    """One that takes a moment to read."""

    async def read_lease(self) -> Lease:
        """See ``Leases.read_lease``."""
        await asyncio.sleep(0)
        return await super().read_lease()


@pytest.mark.parametrize("turns", range(12))
async def test_a_campaign_ends_when_it_is_cancelled_at_whatever_turn(turns: int) -> None:
    """``asyncio.wait_for`` of Python 3.11 loses a cancellation that comes with the answer."""
    replicas = Replicas()
    replicas.shelf = SlowShelf()
    campaign = asyncio.create_task(replicas.add("a").campaign())
    for _ in range(turns):
        await asyncio.sleep(0)
    campaign.cancel()
    done, _ = await asyncio.wait([campaign], timeout=1.0)
    campaign.cancel()
    assert done


async def test_the_lease_says_in_which_mode_its_last_leader_ran(replicas: Replicas) -> None:
    shadow, active = replicas.add("a", Mode.SHADOW), replicas.add("b")
    await shadow.look()
    await shadow.look()
    assert replicas.shelf.lease.mode == "shadow"
    await shadow.resign()
    replicas.now += 0.1
    await active.look()
    await active.look()
    assert replicas.shelf.lease.mode == "active"
    await active.resign()
    assert replicas.shelf.lease.mode == "active"


@dataclass
class Elsewhere:
    """Our own Lease, and Leases of the same name in other namespaces."""

    lease: Lease
    trouble: errors.ApiError | None = None
    own: Lease = field(default_factory=Lease)
    namespaces: tuple[str, ...] = ("volcano-system",)
    reads: int = 0  # of our own Lease

    async def other_leases(self) -> dict[str, Lease]:
        """See ``Client.other_leases``."""
        if self.trouble is not None:
            raise self.trouble
        return dict.fromkeys(self.namespaces, self.lease)

    async def read_lease(self) -> Lease:
        """See ``Leases.read_lease``."""
        self.reads += 1
        return self.own


async def look(leases: Elsewhere, now: float = 1000.0, mode: Mode = Mode.ACTIVE) -> None:
    """Check the name volcano for a replica of this mode."""
    await assert_name_is_free(leases, "volcano", lambda: now, mode)


LIVING = Lease(holder="vc-0", renewed="1970-01-01T00:16:30.000000Z", seconds=15)  # at 990


async def test_a_name_of_which_another_scheduler_lives_is_refused() -> None:
    """vc-scheduler and kube-scheduler hold Leases of their names."""
    with pytest.raises(
        NameTaken, match=r"named volcano runs: vc-0 holds .* volcano-system/volcano"
    ):
        await look(Elsewhere(LIVING))


@pytest.mark.parametrize(
    ("lease", "now"),
    [
        (LIVING, 1006.0),
        (replace(LIVING, holder=""), 1000.0),
        (replace(LIVING, renewed=""), 1000.0),
        (replace(LIVING, renewed="soon"), 1000.0),
        (replace(LIVING, seconds=0), 991.0),
        (replace(LIVING, renewed="9999-12-31T23:59:59.000000Z"), 1000.0),
    ],
    ids=["silent", "given back", "never renewed", "cannot be read", "no duration", "to come"],
)
async def test_a_name_whose_scheduler_is_gone_is_free(lease: Lease, now: float) -> None:
    await look(Elsewhere(lease), now)


OURS = Lease(mode="active", renewed="1970-01-01T00:10:00.000000Z")  # at 600, then given back


@pytest.mark.parametrize(
    ("led", "mode"),
    [("active", Mode.ACTIVE), ("active", Mode.PAUSED), ("paused", Mode.PAUSED)],
)
async def test_a_tutti_that_led_under_a_name_goes_on_whatever_lease_a_tenant_renews(
    led: str, mode: Mode, caplog: pytest.LogCaptureFixture
) -> None:
    """Tenants may write Leases in their namespaces, and not in Tutti's."""
    await look(Elsewhere(LIVING, own=replace(OURS, mode=led)), mode=mode)
    (line,) = caplog.records
    assert line.levelname == "ERROR"
    assert "vc-0 holds the Lease volcano-system/volcano" in line.message


@pytest.mark.parametrize(
    "own",
    [
        Lease(),
        replace(OURS, mode=""),
        replace(OURS, mode="shadow"),
        replace(OURS, mode="paused"),
        replace(OURS, renewed=""),
        replace(OURS, renewed="1970-01-01T00:06:40.000000Z"),
    ],
    ids=[
        "none",
        "of an older version",
        "of a shadow",
        "paused",
        "never renewed",
        "ten minutes ago",
    ],
)
async def test_a_name_under_which_tutti_did_not_lead_lately_is_looked_for_elsewhere(
    own: Lease,
) -> None:
    assert KNOWN_SECONDS == 600
    with pytest.raises(NameTaken, match="volcano-system/volcano"):
        await look(Elsewhere(LIVING, own=own))


async def test_for_many_leases_of_tenants_our_own_is_read_once_and_one_line_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    leases = Elsewhere(LIVING, own=OURS, namespaces=("a", "b", "c"))
    await look(leases)
    assert leases.reads == 1
    (line,) = caplog.records
    assert "Lease a/volcano, vc-0 holds the Lease b/volcano, vc-0" in line.message


async def test_without_the_right_to_look_a_name_is_free_and_an_outage_is_waited_for() -> None:
    refused = errors.Refused("forbidden", status=403)
    await look(Elsewhere(LIVING, refused))
    with pytest.raises(errors.Unavailable):
        await look(Elsewhere(LIVING, errors.Unavailable("away")))
