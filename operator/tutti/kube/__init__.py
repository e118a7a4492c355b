"""The only code that knows the API server: wire formats, decoding, encoding, calls, watches."""
