"""Why gangs wait and what would help, on demand."""
