"""How much is asked of an endpoint at once and in a minute, and what has been asked so far."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from resources.models.llm.replies import Usage

_MINUTE = 60.0
_PRICED_TOKENS = 1_000_000


class Gate:
    """Lets requests to one endpoint through, from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._active = 0
        self._starts: deque[float] = deque()
        self._closed_until = 0.0

    @contextmanager
    def slot(self, max_concurrency: int, requests_per_minute: int | None) -> Iterator[None]:
        """Wait until fewer requests than ``max_concurrency`` are under way and fewer than ``requests_per_minute`` began in
        the last 60 seconds, and take part while the block runs."""
        with self._changed:
            while (wait := self._wait(max_concurrency, requests_per_minute)) != 0:
                self._changed.wait(wait)
            self._active += 1
            self._starts.append(time.monotonic())
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Let nobody through for so long: the server asked one of them to wait."""
        with self._changed:
            self._closed_until = max(self._closed_until, time.monotonic() + seconds)

    def _wait(self, max_concurrency: int, requests_per_minute: int | None) -> float | None:
        """Seconds until it is worth looking again, 0 for now, None for when another request ends."""
        now = time.monotonic()
        while self._starts and self._starts[0] <= now - _MINUTE:
            self._starts.popleft()
        if self._active >= max_concurrency:
            return None
        until = self._closed_until
        if requests_per_minute is not None and len(self._starts) >= requests_per_minute:
            until = max(until, self._starts[-requests_per_minute] + _MINUTE)
        return max(until - now, 0.0)


_gates: dict[str | None, Gate] = {}
_lock = threading.Lock()


def gate_of(base_url: str | None) -> Gate:
    """The gate of an endpoint, shared by all that ask it in this process."""
    with _lock:
        return _gates.setdefault(base_url, Gate())


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """What a chat model was asked so far.

    ``requests`` were answered by the server, ``cached`` from the cache, which costs nothing. ``cost`` is in the currency of
    the prices, None if none are set; requests that came without usage are not in it, nor in the tokens.
    """

    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests_without_usage: int = 0
    cost: float | None = None


class Meter:
    """Counts requests and tokens, from any thread. Prices are for a million tokens; without both there is no cost."""

    def __init__(self, prompt_price: float | None, completion_price: float | None) -> None:
        self._prices = None if prompt_price is None or completion_price is None else (prompt_price, completion_price)
        self._totals = UsageTotals(cost=None if self._prices is None else 0.0)
        self._lock = threading.Lock()

    @property
    def totals(self) -> UsageTotals:
        return self._totals

    def count_cached(self) -> None:
        with self._lock:
            self._totals = replace(self._totals, cached=self._totals.cached + 1)

    def count(self, usage: Usage | None) -> None:
        """One request that the server answered."""
        with self._lock:
            so_far = self._totals
            cost = so_far.cost
            if usage is not None and cost is not None and self._prices is not None:
                cost += usage.prompt_tokens * self._prices[0] / _PRICED_TOKENS
                cost += usage.completion_tokens * self._prices[1] / _PRICED_TOKENS
            self._totals = UsageTotals(
                requests=so_far.requests + 1,
                cached=so_far.cached,
                prompt_tokens=so_far.prompt_tokens + (usage.prompt_tokens if usage else 0),
                completion_tokens=so_far.completion_tokens + (usage.completion_tokens if usage else 0),
                requests_without_usage=so_far.requests_without_usage + (usage is None),
                cost=cost,
            )
