"""What each mutant does wrong. Anchors are short lines, chosen to outlive edits around them."""

from __future__ import annotations

from .planting import Mutant, Patch

_NEVER_SHORT = Patch(
    "verify/lookup.py",
    "return [name for name, n in amounts.items() if n > max(_free(room, name), 0)]",
    "return []",
)
_TWICE_THE_ROOM = Patch(
    "planning/compile/grids.py",
    "np.maximum(unused, 0)",
    "np.maximum(unused + capacity, 0)",
)

SKIPS_THE_RESERVATION = Mutant(
    "skips the reservation",
    (
        Patch(
            "commit/reservations.py",
            "await self._api.reserve(with_roles(reservation))",
            '__import__("dataclasses").replace('
            "reservation, self_uid=reservation.uid, version=str(2**62))",
        ),
    ),
)
IGNORES_CAPACITY = Mutant("ignores capacity", (_TWICE_THE_ROOM, _NEVER_SHORT))
PLANS_BEYOND_CAPACITY = Mutant("plans beyond capacity but verifies", (_TWICE_THE_ROOM,))
BINDS_ONE_MEMBER_EARLY = Mutant(
    "binds one member early",
    (
        Patch(
            "commit/protocol.py",
            "        singles = [p for p in placements if not _needs_reservation(p)]\n",
            """\
        bindings.extend(
            (gang.key, Assignment(m.key, m.uid, m.version, snapshot.nodes[0].name))
            for gang in snapshot.gangs
            if len(gang.members) < gang.min_member
            for m in gang.members[:1]
            if m.is_waiting
        )
        singles = [p for p in placements if not _needs_reservation(p)]
""",
        ),
    ),
)
STARTS_INCOMPLETE_GANGS = Mutant(
    "starts incomplete gangs",
    (
        Patch(
            "gang/demand.py",
            "return max(gang.min_member, sum([role.min_member for role in gang.roles]), 1)",
            "return 1",
        ),
        Patch("verify/plan_checks.py", "if len(starting) < gang.min_member:", "if not starting:"),
    ),
)
LOSES_A_BINDING = Mutant(
    "takes a binding for done that it never sent",
    (
        Patch(
            "commit/binding.py",
            "await self._api.bind(assignment)",
            'await __import__("asyncio").sleep(0) if assignment.pod.name == "fits-0" '
            "else await self._api.bind(assignment)",
        ),
    ),
)
LEAVES_THE_LAST_MEMBER_WAITING = Mutant(
    "leaves the last member waiting under its Reservation",
    (Patch("commit/progress.py", "bind = Bind(open_entries, ", "bind = Bind(open_entries[1:], "),),
)
BINDS_PODS_OF_OTHERS = Mutant(
    "binds the pods of other schedulers",
    (
        Patch(
            "kube/kinds.py",
            'ours += f",spec.schedulerName={scheduler_names[0]}"',
            "pass",
        ),
        Patch(
            "state/reflectors.py",
            "is_ours = pod.spec.scheduler_name == name and is_served(pod)",
            "is_ours = is_served(pod)",
        ),
    ),
)
WRITES_INTO_THE_POD_GROUP = Mutant(
    "writes into the PodGroup beside its status",
    (
        Patch(
            "kube/gang_sources/pod_group.py",
            'StatusWriter(KIND.right("patch", "status"))',
            'StatusWriter(KIND.right("patch"))',
        ),
    ),
)

BINDS_WITHOUT_ASKING_WHO_LEADS = Mutant(
    "binds without asking who leads",
    (Patch("kube/leader_election.py", "(await api.read_lease()).term != term", "False"),),
)
CARRIES_OUT_WHAT_A_PAST_LEADER_RESERVED = Mutant(
    "carries out what a past leader reserved",
    (
        Patch("commit/progress.py", "if reservation.term != term]", "if not reservation.term]"),
        Patch("commit/progress.py", "if reservation.term == term or", "if reservation.term or"),
        Patch("commit/progress.py", "if reservation.term == term)", "if reservation.term)"),
    ),
)
BINDS_WHATEVER_THE_VERSION = Mutant(
    "binds whatever the version",
    (Patch("kube/codec/encode.py", '        "resourceVersion": assignment.version,\n', ""),),
)
BINDS_A_NAMESAKE = Mutant(
    "binds a namesake",
    (
        Patch("kube/codec/encode.py", '        "uid": assignment.uid,\n', ""),
        Patch("kube/codec/encode.py", '        "resourceVersion": assignment.version,\n', ""),
    ),
)
TAKES_A_NAMESAKE_FOR_BOUND = Mutant(
    "takes a namesake for bound",
    (Patch("commit/binding.py", "if pod is None or pod.uid != uid:", "if pod is None:"),),
)
FREES_ROOM_WITHOUT_A_TOUCH = Mutant(
    "frees room without a touch",
    (
        Patch(
            "commit/release.py",
            "if (member := members.get(entry.uid)) is not None and member.may_get_a_node",
            "if (member := members.get(entry.uid)) is not None and not members",
        ),
    ),
)
EVICTS_WHATEVER_THE_VERSION = Mutant(
    "evicts whatever the version",
    (
        Patch(
            "kube/codec/encode.py",
            '"preconditions": {"uid": member.uid, "resourceVersion": member.version}',
            '"preconditions": {"uid": member.uid}',
        ),
    ),
)
KEEPS_A_MEMBER_WITHOUT_A_TOUCH = Mutant(
    "gives an eviction up without a touch",
    (Patch("commit/release.py", "for uid in released.reservation.evictable\n", "for uid in ()\n"),),
)
EVICTS_WHO_WAS_SEEN_AFTER_THE_LEASE = Mutant(
    "evicts members as they were after the Lease was read",
    (
        Patch(
            "commit/protocol.py",
            "tuple(evictable[m.uid] for m in step.members if m.uid in evictable)",
            "step.members",
        ),
    ),
)
FORGETS_PODS_THAT_NO_POD_GROUP_CLAIMS = Mutant(
    "begins a term without a touch of pods that no PodGroup claims",
    (Patch("commit/recovery.py", "for pod in snapshot.strays}", "for pod in ()}"),),
)
TRUSTS_STANDING_RESERVATIONS = Mutant(
    "trusts standing Reservations",
    (
        Patch(
            "commit/progress.py",
            "unkeepable = reservation_checks.lost(snapshot)",
            "unkeepable = {}",
        ),
    ),
)
REPAIRS_GANGS_THAT_LOST_EVERYBODY = Mutant(
    "repairs gangs of which no member is left",
    (Patch("commit/protocol.py", "if gang not in unstarted", "if gang"),),
)
# Seen through by the cycle's own tests, without a judge.
UNFENCED = (
    BINDS_WITHOUT_ASKING_WHO_LEADS,
    CARRIES_OUT_WHAT_A_PAST_LEADER_RESERVED,
    BINDS_WHATEVER_THE_VERSION,
    BINDS_A_NAMESAKE,
    TAKES_A_NAMESAKE_FOR_BOUND,
    FREES_ROOM_WITHOUT_A_TOUCH,
    EVICTS_WHATEVER_THE_VERSION,
    KEEPS_A_MEMBER_WITHOUT_A_TOUCH,
    EVICTS_WHO_WAS_SEEN_AFTER_THE_LEASE,
    FORGETS_PODS_THAT_NO_POD_GROUP_CLAIMS,
    TRUSTS_STANDING_RESERVATIONS,
    REPAIRS_GANGS_THAT_LOST_EVERYBODY,
)

FORGETS_DOMAINS = Mutant(
    "starts gangs without regard to the domains that they require",
    (
        Patch(
            "planning/compile/problems.py",
            "same_domain=levels_used.rules(want),",
            "same_domain=(),",
        ),
    ),
)
REPAIRS_IN_ANY_DOMAIN = Mutant(
    "replaces lost members outside the domain of the others",
    (
        Patch(
            "planning/observed_demand.py",
            "return _within(members, fixed)",
            "return members",
        ),
    ),
)
FORGETS_SEGMENTS_OF_REPAIRS = Mutant(
    "replaces lost members without regard to segments",
    (Patch("planning/observed_demand.py", "= self._of_segments(inside)", "= {}"),),
)
FORGETS_SEGMENTS = Mutant(
    "starts gangs without regard to segments",
    (
        Patch(
            "planning/compile/problems.py",
            "segments=levels_used.segments(want),",
            "segments=(),",
        ),
    ),
)
FORGETS_INDEXES = Mutant(
    "starts the oldest members as one segment, whatever their indexes",
    (
        Patch(
            "planning/compile/answers.py",
            "_with_uids(_by_index(want, group))",
            "_with_uids(group)",
        ),
    ),
)
FORGETS_INDEXES_OF_REPAIRS = Mutant(
    "replaces a lost member in any segment, whatever its index",
    (
        Patch(
            "planning/observed_demand.py",
            "self._by_index if rule.index else self._by_seats",
            "self._by_seats",
        ),
    ),
)
HOLDS_ROOM_IN_ANY_DOMAIN = Mutant(
    "holds room for absent members outside the domain of the others",
    (Patch("planning/observed_demand.py", "map(limited, members.absent)", "members.absent"),),
)
DOMAIN_MUTANTS = (
    FORGETS_DOMAINS,
    REPAIRS_IN_ANY_DOMAIN,
    FORGETS_SEGMENTS_OF_REPAIRS,
    FORGETS_SEGMENTS,
    FORGETS_INDEXES,
    FORGETS_INDEXES_OF_REPAIRS,
    HOLDS_ROOM_IN_ANY_DOMAIN,
)

_LIMITLESS = Patch("queues/limits.py", "max(self.limit - self.in_use - self.held, 0)", "2**40")

EXCEEDS_LIMITS = Mutant("exceeds the limits of queues", (_LIMITLESS,))
# Seen by the judge alone, for its plans are not verified.
FORGETS_QUEUES = Mutant(
    "forgets limits and stops and lets charged queues go",
    (
        _LIMITLESS,
        Patch(
            "operator/cycle.py", "to_thread(plan_checks.violations, ", "to_thread(lambda *_: (), "
        ),
        Patch(
            "queues/tree.py",
            "tree.hold_cause(name) is not None or parent in held",
            "name in tree.broken or parent in held",
        ),
        Patch(
            "commit/queue_lifecycle.py",
            "{use.name for use in plan.queues if not use.charged.amounts}",
            "{use.name for use in plan.queues}",
        ),
    ),
)
KNOWS_NO_COVER = Mutant(
    "knows no guarantees",
    (Patch("planning/queueing/stages.py", "stage.start_covered(lambda _: True)", "pass"),),
)
FORGETS_TIERS = Mutant(
    "starts by a parent's guarantee before what a leaf guarantees",
    (
        Patch(
            "planning/queueing/stages.py",
            "for tier in self.ledger.tree.covering_tiers:",
            "for tier in self.ledger.tree.covering_tiers[-1:]:",
        ),
    ),
)
BORROWS_IN_ANY_ORDER = Mutant(
    "lets the queue that has borrowed most go first",
    (Patch("queues/share.py", "in sorted(padded)]", "in sorted(padded, reverse=True)]"),),
)
QUEUE_MUTANTS = (EXCEEDS_LIMITS, KNOWS_NO_COVER, FORGETS_TIERS, BORROWS_IN_ANY_ORDER)

COVERS_TWICE = Mutant(
    "lets a parent give away what its children's gangs are covered by",
    (
        Patch(
            "queues/cover.py",
            "{line: n - rest.used[line] for line, n in",
            "{line: n for line, n in",
        ),
    ),
)
STRIPS_GANGS = Mutant(
    "lets a start take the cover of its own queue's gangs",
    (Patch("queues/cover.py", "return not any(_strip(", "return True or any(_strip("),),
)
HOLDS_ANOTHERS_GUARANTEE = Mutant(
    "lets a starved gang come before what leaves guarantee to others",
    (
        Patch(
            "planning/queueing/stages.py",
            "self.start_covered(is_not_behind, up_to=first.tier)",
            "self.start_covered(is_not_behind, up_to=0)",
        ),
    ),
)
JOINS_BEFORE_ITS_TIER = Mutant(
    "lets members join by a parent's guarantee before what a leaf guarantees",
    (
        Patch(
            "planning/queueing/stages.py",
            "{extra for extra, queue in queues.items() if tree.tiers[queue] <= tier}",
            "{*queues}",
        ),
    ),
)
COUNTS_ONLY_CHILDREN = Mutant(
    "takes a queue with one child for one with siblings below it",
    (Patch("queues/tree.py", "+ (len(children) > 1)", "+ (len(children) > 0)"),),
)
FORGETS_LOST_MEMBERS = Mutant(
    "charges nothing for lost members",
    (Patch("queues/charge.py", "in_places.at_least(_recorded(record))", "in_places"),),
)
FORGETS_WHO_CAME_FIRST = Mutant(
    "takes the oldest members for those that are needed, also if they joined later",
    (
        Patch(
            "queues/charge.py",
            "sorted(ordered, key=lambda m: joined.get(m.uid, inf)) if joined else ordered",
            "ordered",
        ),
    ),
)
HOLDS_NO_LIMIT = Mutant(
    "holds nothing of limits for a starved gang",
    (
        Patch(
            "planning/compile/quotas.py",
            "held=requests[limits[index].resource])",
            "held=0)",
        ),
    ),
)
HOLDS_NO_COVER = Mutant(
    "holds no cover for a starved gang",
    (
        Patch(
            "planning/queueing/covered_round.py",
            "return start.queue == self.gang.queue and start.priority <= self.gang.priority",
            "return False",
        ),
    ),
)
IGNORES_GUARANTEES_IN_SHARES = Mutant(
    "counts what is guaranteed as borrowed",
    (Patch("queues/share.py", "name: (guarantee.get(name, 0), total", "name: (0, total"),),
)
IGNORES_WEIGHTS = Mutant(
    "borrows without regard to weights",
    (Patch("queues/share.py", "total * weight)", "total)"),),
)
FORGETS_PAST_USE = Mutant(
    "breaks ties between queues without regard to past use",
    (Patch("queues/share.py", "if not any(records.values()):", "if records:"),),
)
# Found out by the oracle of plans with queues.
UNLAWFUL_QUEUE_MUTANTS = (
    EXCEEDS_LIMITS,
    KNOWS_NO_COVER,
    FORGETS_TIERS,
    BORROWS_IN_ANY_ORDER,
    COVERS_TWICE,
    STRIPS_GANGS,
    HOLDS_ANOTHERS_GUARANTEE,
    JOINS_BEFORE_ITS_TIER,
    COUNTS_ONLY_CHILDREN,
    FORGETS_LOST_MEMBERS,
    FORGETS_WHO_CAME_FIRST,
    HOLDS_NO_LIMIT,
    HOLDS_NO_COVER,
    IGNORES_GUARANTEES_IN_SHARES,
    IGNORES_WEIGHTS,
    FORGETS_PAST_USE,
)

ENDS_ITS_OWN_PRIORITY = Mutant(
    "ends gangs of the same queue with no lower priority",
    (
        Patch(
            "queues/claims.py",
            "(gang, gang.queue != start.queue or gang.priority < start.priority) for",
            "(gang, True) for",
        ),
    ),
)
ENDS_PROTECTED_GANGS = Mutant(
    "ends gangs that cannot be ended",
    (
        Patch(
            "queues/claims.py",
            "if may_end_whole and not gang.is_protected and gang.key",
            "if may_end_whole and gang.key",
        ),
    ),
)
ENDS_OTHER_QUEUES_BY_PRIORITY = Mutant(
    "ends gangs of other queues by priority",
    (
        Patch(
            "queues/claims.py",
            "if gang.queue == start.queue and gang.priority < start.priority",
            "if gang.priority < start.priority",
        ),
    ),
)
ENDS_COVERED_GANGS = Mutant(
    "ends what a guarantee covers",
    (Patch("queues/claims.py", "and gang.key not in after.gangs", ""),),
)
CLAIMS_WITHOUT_COVER = Mutant(
    "claims by a guarantee that it strips others of",
    (
        Patch(
            "queues/claims.py",
            "return cover.would_be_covered(tree, running, [start])",
            "return True",
        ),
    ),
)
COVERS_PROTECTED_GANGS_LATE = Mutant(
    "covers protected gangs by priority",
    (Patch("queues/cover.py", "if gang.is_protected and gang.queue == queue:", "if False:"),),
)
ENDS_HALF_GANGS = Mutant(
    "ends some members of a gang",
    (
        Patch(
            "planning/queueing/victim_pool.py",
            "whole = Candidate(gang.key, tuple(members.values()), cost, charge, lost)",
            "whole = Candidate(gang.key, tuple(members.values())[:1], cost, charge, lost)",
        ),
    ),
)
GIVES_ROOM_TWICE = Mutant(
    "gives the room of a victim to two claimants",
    (
        Patch(
            "planning/queueing/victim_pool.py",
            "for m in holders(gang) if m.uid not in self.ended",
            "for m in holders(gang)",
        ),
    ),
)
CLAIMS_BEYOND_LIMITS = Mutant(
    "claims beyond limits",
    (
        Patch(
            "planning/queueing/preemption.py",
            "quotas = _less(limits_before, _charges(some))",
            "quotas = replace(claimed.plan.quotas, limits=(), of_gang={})",
        ),
    ),
)
FORGETS_EARLIER_EVICTIONS = Mutant(
    "forgets what earlier evictions lost",
    (
        Patch(
            "planning/queueing/victim_pool.py",
            "self.spent.get(gang.key, Fraction(0))",
            "Fraction(0)",
        ),
    ),
)
ENDS_THE_FIRST_BY_NAME = Mutant(
    "tries victims by name, not by cost",
    (
        Patch(
            "planning/queueing/victims.py",
            "sorted(some, key=lambda candidate: (candidate.cost, candidate.name))",
            "sorted(some, key=lambda candidate: candidate.name)",
        ),
    ),
)
COUNTS_NO_LEAVING_ROOM = Mutant(
    "ends others beside those that leave",
    (
        Patch(
            "planning/queueing/victim_pool.py",
            "if member.node is not None and member.is_leaving(now):",
            "if False:",
        ),
    ),
)
CLAIM_MUTANTS = (
    ENDS_ITS_OWN_PRIORITY,
    ENDS_PROTECTED_GANGS,
    ENDS_OTHER_QUEUES_BY_PRIORITY,
    ENDS_COVERED_GANGS,
    CLAIMS_WITHOUT_COVER,
    COVERS_PROTECTED_GANGS_LATE,
    ENDS_HALF_GANGS,
    GIVES_ROOM_TWICE,
    CLAIMS_BEYOND_LIMITS,
    FORGETS_EARLIER_EVICTIONS,
    ENDS_THE_FIRST_BY_NAME,
    COUNTS_NO_LEAVING_ROOM,
)

MUTANTS = (
    *DOMAIN_MUTANTS,
    *UNLAWFUL_QUEUE_MUTANTS,
    FORGETS_QUEUES,
    *CLAIM_MUTANTS,
    *UNFENCED,
    SKIPS_THE_RESERVATION,
    IGNORES_CAPACITY,
    PLANS_BEYOND_CAPACITY,
    BINDS_ONE_MEMBER_EARLY,
    STARTS_INCOMPLETE_GANGS,
    LOSES_A_BINDING,
    LEAVES_THE_LAST_MEMBER_WAITING,
    BINDS_PODS_OF_OTHERS,
    WRITES_INTO_THE_POD_GROUP,
)
