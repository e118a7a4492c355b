"""What queues mean: who belongs to one, what it is charged, what it covers, who borrows first.

All of it is functions of values. ``docs/queues.md`` states the same in words.
"""
