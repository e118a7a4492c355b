"""Gang scheduling for Kubernetes: exact, joint, crash-safe.

From the top to the ground, a room imports from lower floors alone:

cli                          the commands, and what they print
main                         the composition root: settings, client, strategy, kopf
loop                         when a cycle runs, and what one cycle does
commit, handlers             from a plan to bound pods; what is watched through kopf
reporting, sources, whatif   what people are told; where gangs come from; what would start a gang
planning, dump               a Snapshot in, a Plan out; Snapshots as files
verify, state                plans checked by code of their own; what is known of the cluster
gang, filters                what a gang is and needs; the rules of kube-scheduler's filters
kube, settings               the only code that knows the API server; environment variables
strategies, model            interchangeable ways from a Problem to a Solution; frozen values
"""

__version__ = "0.1.0"
