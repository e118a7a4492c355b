"""Text from untrusted sources, made safe for a terminal."""


def visible(text: str) -> str:
    """The text on one line; characters that cannot be printed are escaped, as terminals obey some.

    kubectl does so since CVE-2021-25743. Here this includes unusual spaces and direction marks.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
