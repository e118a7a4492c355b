"""The rounds of a plan, and what is proved of each."""
