"""The console: a page in the user's browser, with the user's own rights; ``tutti ui`` serves it.

``server`` is the way in, ``live`` follows a cluster, ``security`` says who may ask. The other
modules are functions of values. What commands answer comes in as ``Answers``: both say the same.
"""
