"""Tutti beside other gang schedulers on gangs with rules, each of which has a placement.

What is asked: does a gang that could start, start? The gangs are fixed, by hand or by seed, before
anybody has seen a result, and the independent oracle of ``tests.conformance.oracle`` has found a
placement for every one of them. ``python -m tests.conformance.against`` prints wins, ties and
losses; the exit code is 1 if Tutti leaves out a single one.
"""
