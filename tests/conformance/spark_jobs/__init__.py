"""A true Spark application: submitted by the real Spark, started by Tutti, run to its result.

``image`` is what Spark's published image does in a container, ``processes`` the containers of
Spark's pods as processes of this machine, ``job`` the application from its submission to its end.
"""
