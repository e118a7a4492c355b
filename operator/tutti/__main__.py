"""Run the command line as ``python -m tutti``."""

from tutti.cli import main

main(prog_name="tutti")
