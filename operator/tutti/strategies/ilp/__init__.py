"""The exact strategy: one integer program over all gangs."""
