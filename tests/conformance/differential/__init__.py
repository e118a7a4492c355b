"""Tutti beside kube-scheduler, node by node.

The oracle is the real kube-scheduler with an extender of the tests' own: it is told which nodes
passed every filter, writes them down and rejects all, so that nothing is ever bound. One case is a
generated pod on a generated cluster; the set that Tutti finds for it must be the same.
"""
