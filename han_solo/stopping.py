"""Ends asked for by signal, as an event: services finish what they do before they go."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def stop_on_signals() -> Iterator[asyncio.Event]:
    """Yield an event that SIGTERM and SIGINT set."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def cancel_on_sigterm() -> Iterator[asyncio.Event]:
    """Cancel the task within at SIGTERM, so that it closes what it opened; the event says so."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    ending = asyncio.Event()
    if threading.current_thread() is not threading.main_thread():
        yield ending  # a command that runs inside another program: signals are that one's
        return

    def end() -> None:
        ending.set()
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield ending
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def wait_for(*events: asyncio.Event, timeout_s: float) -> bool:
    """Wait until one of the events is set; False when the time is over first."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(
            waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for task in waiting:
            task.cancel()
    return bool(done)
