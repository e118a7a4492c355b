"""Why a kubeconfig cannot be used, in words.

Exceptions of its readers may contain a whole entry of the file with its token. So only the names of
entries are quoted.
"""

import ast
import re
import ssl
from collections.abc import Sequence

import yaml

from .errors import MESSAGE_LIMIT

# Messages of the kubernetes client's loader, and their meanings.
MEANINGS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r".*Expected key (\S+) in .*", re.DOTALL), r"\1 is not there, or is empty"),
    (
        re.compile(r".*Expected object with name (\S+) in \S*/(\w+) list"),
        r"there is no \1 among its \2",
    ),
    (re.compile(r"File does not exists: (.*)"), r"\1 does not exist"),
    (re.compile(r"Invalid kube-config file\. (.*)"), r"\1"),
)
# The loader's log messages about an exec plugin that gave no credentials.
ENDED = re.compile(r"exec: process returned (-?\d+)(?:\. (b['\"].*))?", re.DOTALL)
NOT_RUN = re.compile(r"\[Errno \d+\] ([^:]*)(: '.*')?")  # uvloop does not name the command


def why(problem: Exception) -> str:
    """What is wrong with a kubeconfig, or with a file that it names: one clause in one line."""
    match problem:
        case yaml.MarkedYAMLError():
            line = f"in line {problem.problem_mark.line + 1}: " if problem.problem_mark else ""
            return f"it is not YAML: {line}{problem.problem}"
        case yaml.YAMLError() | UnicodeDecodeError():
            return "it is not YAML: it is not text"
        case ssl.SSLError():
            return "a certificate or key in it cannot be read"
        case OSError():
            return f"{problem.filename}: {problem.strerror}"
        case TypeError() | LookupError() | AttributeError():
            return "it does not have the format of a kubeconfig file"
    return _translated(str(problem))


def of_plugin(message: str) -> str:
    """Why an exec plugin gave no credentials, from the log message of the kubernetes client."""
    if match := NOT_RUN.fullmatch(message):
        return match[1]
    match = ENDED.fullmatch(message)
    if match is None:
        return _line(message.removeprefix("exec: "))
    words = ast.literal_eval(match[2]).decode(errors="replace") if match[2] else ""
    return _line(f"it ended with exit code {match[1]}" + f": {words}" * bool(words))


def _translated(message: str) -> str:
    for pattern, meaning in MEANINGS:
        if match := pattern.fullmatch(message):
            return _line(match.expand(meaning))
    return _line(message)


def _line(text: str) -> str:
    """The text on one line of limited length, without the full stop."""
    return " ".join(text.split())[:MESSAGE_LIMIT].rstrip(".")
