"""The demo: gangs wait, start and finish in a terminal, on a real Kubernetes control plane.

`python -m demo` brings its own cluster; `--cluster current` uses the user's. Reading order:
`story` (what happens), `stage` (where), `chronicle` (what is seen of it), `screen` (how it looks).
"""
