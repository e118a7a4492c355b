"""The functional core: a Snapshot in, a Plan out; no clock, no log, no API."""
