"""What the folder sensor decides in a tick: pure, so that every case can be told as a list of ticks.

The cursor holds the files of the last build that was asked for, and since when each file that differs from it has looked as it
does now. A file has settled when it looked the same for ``settle_seconds``, whatever its time says: copying keeps old times, and
the clocks of network drives are wrong. Only in the first tick of all, where nothing was seen before, the file's time must do. A
file that went away is judged alike, for editors save by deleting and renaming.

A build reads the whole folder, so it starts when something differs and nothing is still unsettled. Because one file that never
settles (a log) must not hold back the others for ever, a build starts anyway when a settled change has waited ``PATIENCE`` times
as long; the unsettled files stay waiting then, and start a build of their own when they have settled.

The run key is a link of a chain, made of the key before it and the files it builds: the same tick told again gives the same key,
and going back to an earlier state gives a new one. Without a cursor, or with one that can't be read, the chain begins anew at the
present time and everything is built once more, which costs little because unchanged documents are not worked on.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.errors import SettingsError
from retrico_assets.corpus.scanning import FileState

PATIENCE = 60

_State = tuple[int, int] | None  # size and mtime_ns; None: there is no such file


@dataclass(frozen=True, slots=True)
class Decision:
    """``run_key`` is None when no build is to start. ``waiting``: sources that differ and aren't part of this build.

    ``cursor`` is to be handed in at the next tick.
    """

    run_key: str | None
    cursor: str
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    waiting: tuple[str, ...]


def next_change(cursor: str | None, files: Sequence[FileState], now: float, settle_seconds: float) -> Decision:
    """Compare the files with the last build's and decide whether a build starts now.

    ``now`` is in seconds since the epoch. The cursor grows by each file's path and about 35 bytes.
    Raises SettingsError when ``settle_seconds`` is negative.
    """
    if settle_seconds < 0:
        raise SettingsError(f"settle_seconds is {settle_seconds}; it must be 0 or more.")
    memory = _Memory.load(cursor) or _Memory(chain=_digest(["begin", now]))
    current = {file.source: (file.size, file.mtime_ns) for file in files}
    built = dict(memory.built or {})
    pending = _pending(memory, current, now)
    settled = {source for source, (_, since) in pending.items() if now - since >= settle_seconds}
    overdue = any(now - pending[source][1] >= settle_seconds * PATIENCE for source in settled)
    something = bool(pending) or memory.built is None
    complete = something and len(settled) == len(pending)
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
    """The files that differ from the last build: how each looks, and since when."""
    built = memory.built or {}
    pending: dict[str, tuple[_State, float]] = {}
    for source in current.keys() | built.keys():
        state = current.get(source)
        if state == built.get(source):
            continue
        before, since = memory.pending.get(source, (None, now))
        if source in memory.pending and before == state:
            pending[source] = (state, min(since, now))
        elif memory.first_look and state is not None:
            # Nothing was seen before: the disk's own time must do.
            pending[source] = (state, min(state[1] / 1e9, now))
        else:
            pending[source] = (state, now)
    return pending


@dataclass(frozen=True, slots=True)
class _Memory:
    """What the cursor says. ``built`` is None as long as no build was asked for."""

    chain: str
    built: Mapping[str, _State] | None = None
    pending: Mapping[str, tuple[_State, float]] = field(default_factory=dict)
    first_look: bool = True

    @classmethod
    def load(cls, cursor: str | None) -> "_Memory | None":
        """None when there is no cursor, or none that this version wrote."""
        try:
            said = json.loads(cursor or "")
            if said["version"] != 1:
                return None
            built = None if said["built"] is None else {str(s): _state(state) for s, state in said["built"].items()}
            pending = {str(s): (_state(state), float(since)) for s, (state, since) in said["pending"].items()}
            return cls(str(said["chain"]), built, pending, first_look=False)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def dump(self) -> str:
        said = {"version": 1, "chain": self.chain, "built": self.built, "pending": self.pending}
        return _json(said)


def _state(said: Any) -> _State:
    if said is None:
        return None
    size, mtime_ns = said
    return int(size), int(mtime_ns)


def _digest(value: Any) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()[:32]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
