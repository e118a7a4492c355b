"""Where gangs come from: one module or package for each kind."""
