"""Run by the Spark under test: one SparkContext after another in one JVM, as it is told to.

Each line of standard input is the properties of the next one; each line of standard output is the
id of the application that it became. Uses nothing but pyspark, which is not installed in .venv.
"""

import json
import sys

from pyspark import SparkConf, SparkContext  # type: ignore[import-not-found]  # see above


def main() -> None:
    """Start contexts until there are no more properties."""
    SparkContext._ensure_initialized()  # the JVM, without the properties of any case
    for line in sys.stdin:
        conf = SparkConf(loadDefaults=False)
        for name, value in json.loads(line).items():
            conf.set(name, value)
        context = SparkContext(conf=conf)
        print(context.applicationId, flush=True)
        sys.stdin.readline()  # an empty one: the pods were looked at
        context.stop()
        print("stopped", flush=True)


if __name__ == "__main__":
    main()
