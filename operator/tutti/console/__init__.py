"""The console: a page in the user's browser, with the user's own rights; ``tutti ui`` serves it.

``server`` is the entry point, ``live`` follows a cluster, and ``security`` decides which requests
are answered. The other modules are functions of values. The output of commands comes in through
``Answers``, so the page and the commands show the same.
"""
