"""The functional core and the decoders, alone."""
