"""The exceptions of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coapace._native import Response


class NetworkError(OSError):
    """There is no response: the sentence says why, and what to do."""


class Timeout(NetworkError, TimeoutError):
    """There was no response in time, or after all transmissions."""


class Reset(NetworkError, ConnectionResetError):
    """The peer rejected the message with a Reset (RFC 7252 §4.2)."""


class NotObserved(NetworkError):
    """The server answered a registration with an error, so there is nothing to observe."""

    def __init__(self, text: str, response: Response) -> None:
        super().__init__(text)
        #: The answer of the server.
        self.response = response
