"""Waiting for something to do: Redis says so at once, and a look now and then makes up for what was not heard."""

from __future__ import annotations

import logging
from threading import Event

import redis
from redis.client import PubSub

_LOG = logging.getLogger(__name__)
LONGEST_SECONDS = 0.5
"""How long a worker that hears of events waits at most: a message may be lost, and not everybody sends one."""


class WakeUps:
    """Wake-ups over Redis, for one thread.

    Args:
        client: Redis.
        channel: Where they come.
    """

    def __init__(self, client: redis.Redis, channel: str) -> None:
        self._client, self._channel = client, channel
        self._heard: PubSub | None = None

    def wait(self, stopped: Event, seconds: float) -> None:
        """Return once there may be something to do, or ``stopped`` is set.

        Args:
            stopped: Ends the waiting, after `LONGEST_SECONDS` at the latest.
            seconds: How long to wait where Redis cannot be asked.
        """
        try:
            if self._heard is None:
                self._heard = self._client.pubsub(ignore_subscribe_messages=True)
                self._heard.subscribe(self._channel)
                return  # what was sent before was not heard
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
