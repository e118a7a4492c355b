"""Which devices a claim can get: kube-scheduler's DynamicResources, as functions of values.

``selectors`` evaluates CEL expressions on ``values``, ``pools`` says which devices a node has,
``requests`` what claims select, and ``rows`` turns devices into counts. Requests that constraints
tie together are ``bundles``; ``ways`` chooses devices for one, and ``limits`` counts them.
"""
