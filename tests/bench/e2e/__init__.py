"""The benchmark: the same gangs on the same nodes, scheduler by scheduler, in one run.

Read `scenarios` (what is made), `contenders` (for whom), `rounds` (one measurement), `histories`
(what became of each gang), `verdicts` (the ratios that count). Nothing but an API server and one
scheduler runs while it measures: pods need not run, so there is no kwok and no controller. Times
are those of the API server's audit log, so the measuring side takes no part in them.
"""
