"""What the folder sensor decides in a tick. The functions are pure, so a test is a list of ticks.

The cursor holds the files of the last requested build, and for each file that differs from it, its state and since when it has
that state. A file has settled when its state was the same for ``settle_seconds``, whatever its modification time is: copying
keeps old times, and the clocks of network drives are wrong. Only the very first tick, which has nothing to compare with, uses the
modification time. Removed files are treated in the same way, because editors save by deleting and renaming.

A build reads the whole folder, so it starts when something has changed and every change has settled. One file that never settles
(a log) must not block the others for ever: a build also starts when a settled change has waited ``PATIENCE`` times as long. The
unsettled files then stay waiting, and start another build when they have settled.

Run keys form a chain: each is a hash of the key before it and of the files it builds. So the same tick, evaluated twice, gives
the same key, and going back to an earlier state gives a new one. Without a readable cursor a new chain begins at the present
time and everything is built once more, which costs little because unchanged documents are skipped.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.errors import SettingsError
from retrico_assets.corpus.scanning import FileState

PATIENCE = 60

_State = tuple[int, int] | None  # size and mtime_ns; None when there is no such file


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a build starts: ``run_key`` is None when none does.

    ``waiting`` are sources that have changed but are not part of this build. ``cursor`` is the cursor of the next tick.
    """

    run_key: str | None
    cursor: str
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    waiting: tuple[str, ...]


def next_change(cursor: str | None, files: Sequence[FileState], now: float, settle_seconds: float) -> Decision:
    """Compare the files with those of the last build and decide whether a build starts now.

    ``now`` is in seconds since the epoch. The cursor takes the path of each file and about 35 bytes.

    Raises:
        SettingsError: ``settle_seconds`` is negative.
    """
    if settle_seconds < 0:
        raise SettingsError(f"settle_seconds is {settle_seconds}. It must be 0 or more.")
    memory = _Memory.load(cursor) or _Memory(chain=_digest(["begin", now]))
    current = {file.source: (file.size, file.mtime_ns) for file in files}
    built = dict(memory.built or {})
    pending = _pending(memory, current, now)
    settled = {source for source, (_, since) in pending.items() if now - since >= settle_seconds}
    overdue = any(now - pending[source][1] >= settle_seconds * PATIENCE for source in settled)
    has_changed = bool(pending) or memory.built is None
    complete = has_changed and len(settled) == len(pending)
    if not complete and not (settled and overdue):
        waiting = _Memory(memory.chain, memory.built, pending)
        return Decision(None, waiting.dump(), (), (), (), tuple(sorted(pending)))

    target = {source: state for source, state in (built | {s: pending[s][0] for s in settled}).items() if state is not None}
    after = _Memory(_digest([memory.chain, target]), target, {s: p for s, p in pending.items() if s not in settled})
    return Decision(
        run_key=after.chain,
        cursor=after.dump(),
        added=tuple(sorted(settled & current.keys() - built.keys())),
        changed=tuple(sorted(settled & current.keys() & built.keys())),
        removed=tuple(sorted(settled - current.keys())),
        waiting=tuple(sorted(after.pending)),
    )


def _pending(memory: "_Memory", current: Mapping[str, _State], now: float) -> dict[str, tuple[_State, float]]:
    """The files that differ from the last build: the state of each, and since when it has that state."""
    built = memory.built or {}
    pending: dict[str, tuple[_State, float]] = {}
    for source in current.keys() | built.keys():
        state = current.get(source)
        if state == built.get(source):
            continue
        before, since = memory.pending.get(source, (None, now))
        if source in memory.pending and before == state:
            pending[source] = (state, min(since, now))
        elif memory.is_first and state is not None:
            # There is nothing to compare with, so the modification time counts.
            pending[source] = (state, min(state[1] / 1e9, now))
        else:
            pending[source] = (state, now)
    return pending


@dataclass(frozen=True, slots=True)
class _Memory:
    """The content of the cursor. ``built`` is None as long as no build was requested."""

    chain: str
    built: Mapping[str, _State] | None = None
    pending: Mapping[str, tuple[_State, float]] = field(default_factory=dict)
    is_first: bool = True

    @classmethod
    def load(cls, cursor: str | None) -> "_Memory | None":
        """Read a cursor. None when there is none, or one that this version did not write."""
        try:
            content = json.loads(cursor or "")
            if content["version"] != 1:
                return None
            built = None if content["built"] is None else {str(s): _state(state) for s, state in content["built"].items()}
            pending = {str(s): (_state(state), float(since)) for s, (state, since) in content["pending"].items()}
            return cls(str(content["chain"]), built, pending, is_first=False)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def dump(self) -> str:
        return _json({"version": 1, "chain": self.chain, "built": self.built, "pending": self.pending})


def _state(stored: Any) -> _State:
    if stored is None:
        return None
    size, mtime_ns = stored
    return int(size), int(mtime_ns)


def _digest(value: Any) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()[:32]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
