"""Frozen values and their arithmetic: the inputs and the results of decisions.

All other packages may import these modules, which import only the standard library.
"""
