"""The order of a plan while there are Queues: covered gangs first, then borrowers by turns."""
