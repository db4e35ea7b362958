"""Wake-ups of workers: pub/sub messages over Redis, with polling as a fallback for lost messages."""

from __future__ import annotations

import logging
from threading import Event

import redis
from redis.client import PubSub

_LOG = logging.getLogger(__name__)
LONGEST_SECONDS = 0.5
"""Maximum wait of a worker that receives wake-ups: a message may be lost, and not every writer sends one."""


class WakeUps:
    """Wake-ups over Redis, for one thread."""

    def __init__(self, client: redis.Redis, channel: str) -> None:
        self._client, self._channel = client, channel
        self._heard: PubSub | None = None

    def wait(self, stopped: Event, seconds: float) -> None:
        """Return when there may be something to do, or ``stopped`` is set.

        Args:
            stopped: Ends the wait, after `LONGEST_SECONDS` at the latest.
        """
        try:
            if self._heard is None:
                self._heard = self._client.pubsub(ignore_subscribe_messages=True)
                self._heard.subscribe(self._channel)
                return  # messages sent before the subscription were missed
            message = self._heard.get_message(timeout=LONGEST_SECONDS)
            while message is not None:
                message = self._heard.get_message()
        except redis.RedisError as error:
            _LOG.debug("no wake-ups: %s", error)
            self.close()
            stopped.wait(seconds)

    def close(self) -> None:
        """Stop listening."""
        if self._heard is not None:
            self._heard.close()
            self._heard = None
