"""The only code that speaks with the API server: wire formats, codecs, calls, watches."""
