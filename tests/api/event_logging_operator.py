"""Run the operator, and let it log every event of a pod or a PodGroup once its store knows it.

A script of its own, since nobody but a test needs to know that moment.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from tutti.kube.list_watch import Reflector
from tutti.operator import handlers, main
from tutti.operator.settings import Settings
from tutti.reporting import logs

_, _, kubeconfig = sys.argv
logger = logging.getLogger(__name__)
take_in = handlers.take_in


def take_in_and_log(feed: Reflector[Any, Any], event: Mapping[str, Any], uid: str) -> None:
    """Take the event in, then log its type, its object and the object's version."""
    take_in(feed, event, uid)
    about = event["object"]["metadata"]
    words = (event["type"], about["namespace"], about["name"], about["resourceVersion"])
    logger.info("store knows %s %s/%s %s", *words)


handlers.take_in = take_in_and_log
settings = Settings.from_environment(os.environ)
logs.configure(settings.log_format, settings.log_level)
asyncio.run(main.serve(settings, kubeconfig))
