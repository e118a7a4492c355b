"""`python -m tests.bench.load`: see `.command`."""

from ...harness.interruption import run

if __name__ == "__main__":
    run("tests.bench.load")
