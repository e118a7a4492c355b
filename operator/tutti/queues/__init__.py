"""What queues mean: which gangs they have, what they are charged, what they cover, the turns.

All modules are functions of values, without input or output. ``docs/queues.md`` states the same.
"""
