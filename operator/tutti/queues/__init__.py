"""What queues mean: their gangs, their charges, what they cover, and the turns of borrowers.

All modules are functions of values, without input or output. ``docs/queues.md`` states the same.
"""
