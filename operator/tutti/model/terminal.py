"""Words that may come from anybody, made fit for a terminal."""


def visible(text: str) -> str:
    """A text on one line; what cannot be printed is spelt out, for terminals obey some of it.

    As kubectl does since CVE-2021-25743, for other spaces and for marks of direction, too.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
