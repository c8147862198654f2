"""One HTTP link to Letta: the SDK's client, loaded late, with our own rules about trying again.

The SDK retries everything twice, messages and conflicts included; here only reads are tried again,
and never after a timeout. After a 500 Letta resets the next request on the same connection, so that
connection is closed at once. Answers are handed on as the JSON that came, not as the SDK's models.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

import httpx

from han_solo.clock import Clock
from han_solo.errors import LettaError, LettaUnavailable, LettaUnreachable, SettingsError
from han_solo.serving import refuse_callback

from . import faults, fence

if TYPE_CHECKING:
    from letta_client import AsyncLetta
    from letta_client._response import AsyncAPIResponse

RETRY_DELAYS_S: Final = (0.1, 0.5)
"""Waits before the second and third try of a read: enough for a reset connection or a restart of
a proxy; anything longer is the caller's to decide."""

MAX_CONNECTIONS: Final = 16
"""Letta's database pool is off by default: each request opens a connection of Postgres."""

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class _Closable(Protocol):
    async def aclose(self) -> None: ...


if TYPE_CHECKING:
    Call = Callable[[AsyncLetta], Awaitable[AsyncAPIResponse[Any] | httpx.Response]]


class Link:
    """A connection pool to one Letta server."""

    def __init__(
        self,
        base_url: str,
        password: str | None,
        *,
        timeout_s: float,
        message_timeout_s: float,
        clock: Clock | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.base_url = _checked(base_url)
        self._password = password
        self._timeout_s = timeout_s
        # A turn takes minutes; a connection does not, and without one nothing was sent.
        self._message_timeout = httpx.Timeout(message_timeout_s, connect=timeout_s, pool=timeout_s)
        self._clock = clock or Clock()
        self._transport = transport
        self._client: AsyncLetta | None = None

    async def read(self, doing: str, call: Call) -> object:
        """Make a call that changes nothing, up to three times, and return its JSON."""
        for delay_s in RETRY_DELAYS_S:
            try:
                return await self._once(doing, call, ())
            except LettaUnavailable as error:
                if not _is_worth_another_try(error):
                    raise
            await self._clock.sleep(delay_s)
        return await self._once(doing, call, ())

    async def write(self, doing: str, call: Call, *, secrets: Sequence[str] = ()) -> object:
        """Make a call that changes something, once, and return its JSON.

        Args:
            doing: what is attempted, for the error's sentence.
            call: makes the request.
            secrets: texts in the request that an error must not repeat.

        Raises:
            LeadLost: the fence does not hold; nothing was sent.
            LettaError: as Letta answered.
        """
        fence.check_fence()
        return await self._once(doing, call, secrets)

    async def message(self, doing: str, path: str, body: Mapping[str, object]) -> object:
        """Post a message, once, with the long deadline, and return the turn's JSON.

        An error of it is not ``retryable``, since the turn may still run; the one exception is
        ``LettaUnreachable``, after which nothing was sent.

        Raises:
            CallbackRefused: from inside a tool call that an agent waits for; nothing was sent.
        """
        refuse_callback()
        try:
            return await self.write(
                doing,
                # Not by with_options: its copy of the client takes a key from the environment.
                lambda letta: letta.post(
                    path,
                    cast_to=httpx.Response,
                    body=body,
                    options={"timeout": self._message_timeout},
                ),
            )
        except LettaUnreachable:
            raise
        except LettaError as error:
            error.retryable = False
            raise

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _once(self, doing: str, call: Call, secrets: Sequence[str]) -> object:
        letta = self._letta()
        import letta_client  # noqa: PLC0415 - loaded just now

        known = tuple(secret for secret in (self._password, *secrets) if secret)
        target = faults.Target(self.base_url, has_password=bool(self._password), secrets=known)
        try:
            response = await call(letta)
        except letta_client.APIError as error:
            described = faults.describe(error, target, doing)
            # A traceback shows the cause too, and the SDK puts the whole answer into it.
            error.args = ("Letta's answer is left out here: it may repeat what was sent",)
            raise described from error
        body = response.content if isinstance(response, httpx.Response) else await response.read()
        try:
            parsed: object = json.loads(body)
        except ValueError as error:
            raise faults.not_letta(target, doing) from error
        return parsed

    def _letta(self) -> AsyncLetta:
        if self._client is None:
            # Importing it takes 0.7 s, which a process that never asks Letta should not pay.
            import letta_client  # noqa: PLC0415

            http = httpx.AsyncClient(
                transport=self._transport,
                timeout=self._timeout_s,
                limits=httpx.Limits(max_connections=MAX_CONNECTIONS),
                # A proxy of the environment can not reach our loopback.
                trust_env=urlsplit(self.base_url).hostname not in LOOPBACK_HOSTS,
                event_hooks={"response": [_close_after_server_error]},
            )
            self._client = letta_client.AsyncLetta(
                api_key=self._password,
                base_url=self.base_url,
                timeout=self._timeout_s,
                max_retries=0,
                http_client=http,
            )
            # Given None, the SDK would take a key from the environment that is not ours to send.
            self._client.api_key = self._password
        return self._client


def _is_worth_another_try(error: LettaUnavailable) -> bool:
    """Say whether a read may do better: not after a whole deadline, nor against another program."""
    import letta_client  # noqa: PLC0415 - loaded already by whoever raised

    cause = error.__cause__
    return isinstance(cause, letta_client.APIError) and not isinstance(
        cause, letta_client.APITimeoutError
    )


async def _close_after_server_error(response: httpx.Response) -> None:
    if response.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
        return
    await response.aread()
    stream: _Closable | None = response.extensions.get("network_stream")
    if stream is not None:
        await stream.aclose()


def _checked(base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError(
            f"{base_url!r} is no address of a Letta server.",
            hint="Set LETTA_BASE_URL to one like http://127.0.0.1:8283.",
        )
    if parts.username or parts.password:
        raise SettingsError(
            f"The address of Letta at {parts.hostname} has a user or password in it.",
            hint="Put the password into HAN_SOLO_LETTA_PASSWORD: addresses are shown and logged.",
        )
    return base_url.rstrip("/").removesuffix("/v1")
