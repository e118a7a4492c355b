"""The demo: gangs wait, start, finish and make way, in a terminal and on a real control plane.

`python -m demo` brings its own cluster; `--cluster current` uses the user's. Reading order:
`story` (what happens), `stage` (where), `chronicle` (what is seen of it), `screen` (how it looks).
"""
