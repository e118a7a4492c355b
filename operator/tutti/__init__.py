"""Gang scheduling for Kubernetes: exact, joint, crash-safe.

From the top to the ground, a room imports from lower floors alone:

cli                          the commands, and what they print
operator, console            the process: kopf, settings, the cycle; the page of `tutti ui`
commit                       from a plan to bound pods
reporting, spark, whatif     what people are told; Spark's gangs; what would start a gang
planning, dump               a Snapshot in, a Plan out; Snapshots as files
queues, verify, state        quotas; checks that share no code with plans; the known cluster
gang, filters, kube          what a gang is and needs; kube-scheduler's filters; the API server
strategies, model            interchangeable ways from a Problem to a Solution; frozen values
"""

__version__ = "0.1.0"
