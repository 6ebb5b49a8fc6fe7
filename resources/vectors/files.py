"""One vector index on disk: files that only grow, and a manifest that says how much of them counts.

``vectors-<generation>.f32``   unit vectors, float32, a row a vector
``items-<generation>.jsonl``   a line a step: ``[id, hash]`` puts the next row under the id, ``[id]`` deletes the id
``centroids-<training>.f32``   the clusters of the search index
``lists-<training>.i32``       the cluster of each of the first rows; later ones are in none yet
``manifest.json``              model, dimension, lengths and checksums of the others; replaced atomically, after they are synced

A write appends what is new, then replaces the manifest. Bytes beyond what the manifest counts are of a write that was
killed; the next one overwrites them. So a kill at any moment leaves the old state or the new. Readers notice a new
manifest by its inode and time and read what was added only. A new generation is written when most rows are dead.
"""

import hashlib
import json
import os
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from resources.errors import StoreError

FORMAT = 1
_BLOCK = 8192
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Clusters:
    """A training of the search index: ``count`` centroids, and the first ``rows`` rows divided among them."""

    training: str
    count: int
    rows: int
    centroids_crc: int
    lists_crc: int


@dataclass(frozen=True, slots=True)
class Manifest:
    model: str
    dimension: int
    generation: str
    rows: int = 0
    live: int = 0
    vectors_crc: int = 0
    items_bytes: int = 0
    items_crc: int = 0
    clusters: Clusters | None = None


class IndexFiles:
    """The image of one index in this process. Writing methods are called by the holder of the store's lock, after ``refresh``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.forget()

    def forget(self) -> None:
        """Start again from nothing: the next refresh reads everything."""
        self.manifest: Manifest | None = None
        self.ids: list[str | None] = []  # by row; None: the row is dead
        self.row_of: dict[str, int] = {}
        self.hashes: dict[str, str] = {}
        self.centroids = np.empty((0, 0), np.float32)
        self.lists = np.empty(0, np.int32)  # by row, of the rows that are clustered
        self._stamp: tuple[int, int, int] | None = None

    def refresh(self) -> list[int] | None:
        """Read what another process or this one has written since. Raises StoreError for a damaged file, by name.

        Returns the rows that were alive before and are dead now, if the image only grew; None if it was read anew.
        """
        while True:
            stamp = self._current_stamp()
            if stamp is not None and stamp == self._stamp:
                return []
            try:
                if stamp is None:
                    self.forget()
                    return None
                return self._read(stamp)
            except FileNotFoundError as error:
                self.forget()
                if self._current_stamp() == stamp:  # otherwise a writer has just replaced the files
                    raise self._damaged(Path(error.filename).name, "it is missing") from error
            except BaseException:
                self.forget()
                raise

    def create(self, model: str, dimension: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        _sync_folder(self.folder.parent)
        self._commit(Manifest(model, dimension, uuid.uuid4().hex[:12]))

    def append(self, ids: Sequence[str], vectors: np.ndarray, hashes: Sequence[str]) -> None:
        """Put unit vectors (n, dimension) under these ids, each given once."""
        manifest = self._known()
        steps = _lines(zip(ids, hashes, strict=True))
        data = np.ascontiguousarray(vectors, "<f4").tobytes()
        self._append("vectors", manifest.generation, manifest.rows * manifest.dimension * 4, data)
        self._append("items", manifest.generation, manifest.items_bytes, steps)
        self._commit(
            replace(
                manifest,
                rows=manifest.rows + len(ids),
                live=manifest.live + sum(item not in self.row_of for item in ids),
                vectors_crc=zlib.crc32(data, manifest.vectors_crc),
                items_bytes=manifest.items_bytes + len(steps),
                items_crc=zlib.crc32(steps, manifest.items_crc),
            )
        )

    def delete(self, ids: Sequence[str]) -> None:
        """Delete these ids, each known and given once."""
        manifest = self._known()
        steps = _lines([item] for item in ids)
        self._append("items", manifest.generation, manifest.items_bytes, steps)
        self._commit(
            replace(
                manifest,
                live=manifest.live - len(ids),
                items_bytes=manifest.items_bytes + len(steps),
                items_crc=zlib.crc32(steps, manifest.items_crc),
            )
        )

    def compact(self) -> None:
        """Write a new generation of the live rows, in their order."""
        manifest = self._known()
        rows = self.live_rows()
        fresh = Manifest(manifest.model, manifest.dimension, uuid.uuid4().hex[:12], len(rows), len(rows))
        length = crc = 0
        for start in range(0, len(rows), _BLOCK):
            data = self.vectors(rows[start : start + _BLOCK]).astype("<f4").tobytes()
            self._append("vectors", fresh.generation, length, data)
            length, crc = length + len(data), zlib.crc32(data, crc)
        names = [item for item in self.ids if item is not None]
        steps = _lines((item, self.hashes[item]) for item in names)
        self._append("items", fresh.generation, 0, steps)
        clusters = manifest.clusters and self._write_clusters(self.centroids, self.lists[rows[rows < len(self.lists)]])
        self._commit(replace(fresh, vectors_crc=crc, items_bytes=len(steps), items_crc=zlib.crc32(steps), clusters=clusters))

    def set_clusters(self, centroids: np.ndarray) -> None:
        """Make these (c, dimension) the clusters of all rows."""
        manifest = self._known()
        blocks = self.blocks(np.arange(manifest.rows))
        lists = np.concatenate([_nearest(block, centroids) for _, block in blocks])
        self._commit(replace(manifest, clusters=self._write_clusters(centroids, lists)))

    def sweep(self) -> None:
        """Remove files that the manifest does not name: of an older generation, or of a write that was killed."""
        manifest = self._known()
        named = {_MANIFEST, _name("vectors", manifest.generation), _name("items", manifest.generation)}
        if manifest.clusters:
            named |= {_name(kind, manifest.clusters.training) for kind in ("centroids", "lists")}
        for path in self.folder.iterdir():
            if path.name not in named:
                path.unlink(missing_ok=True)

    def live_rows(self) -> np.ndarray:
        return np.fromiter((row for row, item in enumerate(self.ids) if item is not None), np.int64)

    def blocks(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, their vectors), some thousand at a time."""
        for start in range(0, len(rows), _BLOCK):
            yield rows[start : start + _BLOCK], self.vectors(rows[start : start + _BLOCK])

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """The vectors (n, dimension) of these rows, in ascending order; neighbours on disk are read at once."""
        manifest = self._known()
        found = np.empty((len(rows), manifest.dimension), np.float32)
        if not len(rows):
            return found
        width = manifest.dimension * 4
        name = _name("vectors", manifest.generation)
        with (self.folder / name).open("rb", buffering=0) as file:
            gaps = (np.diff(rows) != 1) | (np.arange(1, len(rows)) % _BLOCK == 0)
            for run in np.split(np.arange(len(rows)), np.flatnonzero(gaps) + 1):
                data = os.pread(file.fileno(), len(run) * width, int(rows[run[0]]) * width)
                if len(data) != len(run) * width:
                    raise self._damaged(name, "it is shorter than the manifest says")
                found[run] = np.frombuffer(data, "<f4").reshape(len(run), manifest.dimension)
        return found

    def _read(self, stamp: tuple[int, int, int]) -> list[int] | None:
        manifest = self._read_manifest()
        known = self.manifest
        grew = known is not None and known.generation == manifest.generation and known.items_bytes <= manifest.items_bytes
        if not grew:
            self.forget()
        base = (
            known if known is not None and grew else replace(manifest, rows=0, live=0, vectors_crc=0, items_bytes=0, items_crc=0)
        )
        items = self._checked(
            "items", manifest.generation, base.items_bytes, manifest.items_bytes, base.items_crc, manifest.items_crc
        )
        width = manifest.dimension * 4
        self._check_vectors(manifest, base.rows * width, manifest.rows * width, base.vectors_crc)
        dead = self._apply(items, base.rows, manifest)
        if manifest.clusters and (not grew or base.clusters != manifest.clusters):
            self._read_clusters(manifest, manifest.clusters)
        self.manifest, self._stamp = manifest, stamp
        return dead if grew else None

    def _apply(self, steps: bytes, first: int, manifest: Manifest) -> list[int]:
        """Take in steps that were read; the rows before ``first`` that died by them."""
        dead = []
        for step in json.loads(b"[" + steps.strip().replace(b"\n", b",") + b"]"):
            old = self.row_of.pop(step[0], None)
            if old is not None:
                self.ids[old] = None
                if old < first:
                    dead.append(old)
            if len(step) == 2:
                self.row_of[step[0]] = len(self.ids)
                self.hashes[step[0]] = step[1]
                self.ids.append(step[0])
            else:
                self.hashes.pop(step[0], None)
        if len(self.ids) != manifest.rows or len(self.row_of) != manifest.live:
            counts = f"{len(self.ids)} rows and {len(self.row_of)} ids, the manifest {manifest.rows} and {manifest.live}"
            raise self._damaged(_name("items", manifest.generation), f"it counts {counts}")
        return dead

    def _check_vectors(self, manifest: Manifest, start: int, end: int, crc: int) -> None:
        """Compare the checksum in blocks: the vectors themselves are read when they are needed."""
        step = 64 << 20
        for low in range(start, end, step):
            crc = zlib.crc32(self._bytes("vectors", manifest.generation, low, min(end, low + step)), crc)
        if crc != manifest.vectors_crc:
            raise self._damaged(_name("vectors", manifest.generation), "its checksum is wrong")

    def _read_clusters(self, manifest: Manifest, clusters: Clusters) -> None:
        size = clusters.count * manifest.dimension * 4
        centroids = self._checked("centroids", clusters.training, 0, size, 0, clusters.centroids_crc)
        lists = self._checked("lists", clusters.training, 0, clusters.rows * 4, 0, clusters.lists_crc)
        self.centroids = np.frombuffer(centroids, "<f4").reshape(clusters.count, manifest.dimension)
        self.lists = np.frombuffer(lists, "<i4")

    def _read_manifest(self) -> Manifest:
        raw = (self.folder / _MANIFEST).read_bytes()
        try:
            body = json.loads(raw)
            checksum = body.pop("checksum")
            if checksum != _checksum(body):
                raise ValueError("its checksum is wrong")
            if body.pop("format") != FORMAT:
                raise ValueError(f"it is not of format {FORMAT}; another version of RetriCo wrote it")
            clusters = body.pop("clusters")
            return Manifest(**body, clusters=Clusters(**clusters) if clusters else None)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged(_MANIFEST, str(error)) from error

    def _write_clusters(self, centroids: np.ndarray, lists: np.ndarray) -> Clusters:
        training = uuid.uuid4().hex[:12]
        data = [np.ascontiguousarray(centroids, "<f4").tobytes(), np.ascontiguousarray(lists, "<i4").tobytes()]
        for kind, values in zip(("centroids", "lists"), data, strict=True):
            self._append(kind, training, 0, values)
        return Clusters(training, len(centroids), len(lists), *map(zlib.crc32, data))

    def _checked(self, kind: str, key: str, start: int, end: int, crc_before: int, crc: int) -> bytes:
        data = self._bytes(kind, key, start, end)
        if zlib.crc32(data, crc_before) != crc:
            raise self._damaged(_name(kind, key), "its checksum is wrong")
        return data

    def _bytes(self, kind: str, key: str, start: int, end: int) -> bytes:
        if start == end:
            return b""
        with (self.folder / _name(kind, key)).open("rb") as file:
            file.seek(start)
            data = file.read(end - start)
        if len(data) != end - start:
            raise self._damaged(_name(kind, key), f"it has {start + len(data)} bytes, the manifest counts {end}")
        return data

    def _append(self, kind: str, key: str, end: int, data: bytes) -> None:
        """Write after ``end``, over what a killed write may have left there, and sync."""
        with os.fdopen(os.open(self.folder / _name(kind, key), os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
            if (size := os.fstat(file.fileno()).st_size) < end:
                raise self._damaged(_name(kind, key), f"it has {size} bytes, the manifest counts {end}")
            file.truncate(end)
            file.seek(end)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _commit(self, manifest: Manifest) -> None:
        """Replace the manifest, and with it the state of the index, then read that back."""
        body: dict[str, Any] = {"format": FORMAT, **asdict(manifest)}
        path = self.folder / f"{_MANIFEST}.{os.getpid()}.new"
        with path.open("w", encoding="utf-8") as file:
            json.dump({**body, "checksum": _checksum(body)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(self.folder)
        path.replace(self.folder / _MANIFEST)
        _sync_folder(self.folder)

    def _current_stamp(self) -> tuple[int, int, int] | None:
        """Changes whenever the manifest does; None if there is no index here. Raises StoreError if only the manifest is gone."""
        try:
            status = (self.folder / _MANIFEST).stat()
        except (FileNotFoundError, NotADirectoryError):
            if any(self.folder.glob("vectors-*")) and not (self.folder / _MANIFEST).exists():
                raise self._damaged(_MANIFEST, "it is missing") from None
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _known(self) -> Manifest:
        if self.manifest is None:
            raise StoreError(f"the vector index in {self.folder} was dropped by another process; build it again")
        return self.manifest

    def _damaged(self, name: str, why: str) -> StoreError:
        return StoreError(
            f"{self.folder / name} is damaged: {why}. The index {self.folder.name!r} is not used like this; drop it "
            "(drop_index, or delete its folder) and build it again from the texts"
        )


def _name(kind: str, key: str) -> str:
    return f"{kind}-{key}.{ {'vectors': 'f32', 'items': 'jsonl', 'centroids': 'f32', 'lists': 'i32'}[kind] }"


def _lines(steps: Iterable[Sequence[str]]) -> bytes:
    return "".join(json.dumps(step) + "\n" for step in steps).encode()


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _nearest(vectors: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    return (vectors @ centroids.T).argmax(axis=1).astype(np.int32)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
