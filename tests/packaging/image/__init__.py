"""The Dockerfile, carried out without a Docker engine: `make image-check`."""
