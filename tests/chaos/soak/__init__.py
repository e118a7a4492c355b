"""What lasts: the operator after ten thousand gangs, beside ten thousand finished, with a huge one.

Each is a command, `python -m tests.chaos.soak long-life | finished | one-object`, and a small one
is in `make test`. Nothing in the operator knows of these: `watched` looks into the process from
outside.
"""
