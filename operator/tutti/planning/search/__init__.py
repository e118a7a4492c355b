"""The rounds of a plan, and what is proved about each round."""
