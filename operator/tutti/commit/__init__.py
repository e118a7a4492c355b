"""From a plan to bound pods: Reservations, bindings, releases and evictions."""
