"""The part of a plan that gives devices to the claims of pods."""
