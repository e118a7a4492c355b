"""Frozen values and their arithmetic: what a decision may look at, and what a decision is.

Everything above imports these; they import the standard library only.
"""
