"""The controllers that make gangs, real and without a scheduler: what exactly each of them makes.

A gang source relies on these facts. Where a newer controller makes something else, this fails
first.
"""
