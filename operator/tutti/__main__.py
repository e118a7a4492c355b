"""Run the command line as ``python -m tutti``."""

from .cli import main

main(prog_name="tutti")
