"""Facts from the public tests of other schedulers, beside our answers."""
