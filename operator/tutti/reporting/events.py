"""Events for people: each is sent once, and one that is refused is not sent again."""

import logging

from ..kube import errors
from ..kube.client import Api
from ..kube.codec import encode
from ..kube.concurrency import is_away

logger = logging.getLogger(__name__)


async def create_event(api: Api, event: encode.Event) -> None:
    """Create an Event; one that the API server refuses is dropped.

    Raises:
        errors.Unavailable: the API server is away.
    """
    try:
        await api.say(event)
    except errors.ApiError as problem:
        if is_away(problem):
            raise
        # A namespace that is being deleted takes no Events; nobody will miss this one.
        logger.debug("the Event %s was not created: %s", event.reason, problem)
