"""`python -m tests.load`: see `.command`."""

from ..interruption import run

if __name__ == "__main__":
    run("tests.load")
