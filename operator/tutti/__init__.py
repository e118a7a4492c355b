"""Gang scheduling for Kubernetes: exact, joint, crash-safe.

cli         the commands; thin over what follows
main        composition root: settings, client, strategy, kopf
settings    one frozen model, from the environment
logs        how log lines look
handlers    what is watched through kopf: PodGroups, and the pods that wait
demand      keeps kopf running; a list of our own after each of its lists
probes      /healthz, /readyz and /metrics
pulse       when cycles run
takeover    what a new leader does before its first cycle
cycle       observe, plan, verify, reserve, bind, report
dumps       what a plan that broke a promise was made of
commit      reservations and bindings, and what fences them
adopting    Reservations of past terms
reserving   one Reservation at a time, and what its answer means
binding     one binding at a time, likewise
freeing     room that is given back, once nothing can be bound to it
evicting    gangs that are given up for now
reporting   conditions, Events, log lines: what people are told
silence     the gangs of which there is nothing to say for now
election    leader election on a Lease
feeds       the streams that show the World its cluster
replay      Snapshots from files
world       the live picture; snapshot(now)
occupancy   the nodes, and what is used of each
gangs       PodGroups with their pods
storage     what claims lead to, while pods of ours name any
catalogue   claims, volumes and classes by name
claimants   the pods that name claims
attaching   which volumes are attached to which node, and how many may be
neighbours  who has a node, while rules between pods are in force
bereft      gangs whose Reservation went before its time
refusals    what the API server would not do a moment ago
store       objects of one kind, the newest version of each
kube        the only code that knows the API server
spark       what Spark's properties will ask for
planning    the functional core: Snapshot in, Plan out
strategies  interchangeable ways from a Problem to a Solution
model       frozen values
"""

__version__ = "0.1.0"
