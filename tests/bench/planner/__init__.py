"""The planner's benchmark: Snapshots as large as real clusters, and no control plane.

``python -m tests.bench.planner`` measures; ``docs/benchmarks.md`` says what its rows mean. The
end-to-end benchmark is ``tests.bench.e2e``.
"""
