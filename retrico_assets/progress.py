"""How far a long step is: to whoever listens (the command line's bars), and now and then to a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, int, int], None]

_LOG_EVERY_SECONDS = 5.0
_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call ``listener(step, done, total)`` for every step of this process while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def reporter(step: str, log: Callable[[str], None], unit: str) -> Callable[[int, int], None]:
    """A ``report(done, total)`` function for a step. It logs every five seconds, so that a log stays readable."""
    started = last = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last
        for listener in _listeners:
            listener(step, done, total)
        now = time.monotonic()
        if now - last >= _LOG_EVERY_SECONDS:
            last = now
            rate = done / (now - started)
            left = f", about {(total - done) / rate:.0f} s to go" if rate else ""
            log(f"{step}: {done:,} of {total:,} {unit}{left}")

    return report
