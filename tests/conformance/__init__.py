"""What Tutti promises, judged from outside: by its commands and its JSON, not by its modules."""
