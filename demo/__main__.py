"""`python -m demo`: see `.command`."""

from tests.harness.interruption import run

if __name__ == "__main__":
    run("demo")
