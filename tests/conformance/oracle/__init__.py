"""An independent answer to every small admission question, and the comparison of ours with it.

Nothing here reads how Tutti plans: a Case is written from what a Problem or a Snapshot means, and
OR-Tools' CP-SAT says what is the most that can be admitted, priority by priority.
"""
