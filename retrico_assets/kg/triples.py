"""Triples that a KG model learns from, read from a graph or from files, and their split into train, validation and test."""

import csv
import hashlib
import io
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from resources.errors import SettingsError
from resources.graph.base import GraphStore

TRIPLE_COLUMNS = ("head_id", "relation", "tail_id", "head", "tail", "score", "split")
TRAIN, VALIDATION, TEST = SPLITS = ("train", "validation", "test")

_FILES = {TRAIN: "train", VALIDATION: "valid", TEST: "test"}
_ENDINGS = (".txt", ".tsv", ".csv")
_KEYS = ["head_id", "relation", "tail_id"]

TripleRow = tuple[str, str, str, str, str, float, str]
"""The values of TRIPLE_COLUMNS."""


@dataclass(frozen=True)
class ReadTriples:
    """Triples, rows that could not be read (reason by place), and the revision of the graph they come from.

    ``frame`` has all of TRIPLE_COLUMNS; ``split`` is empty where the source has none. ``repeated`` counts rows that were left
    out because they repeat a triple.
    """

    frame: pd.DataFrame
    bad_rows: dict[str, str] = field(default_factory=dict)
    repeated: int = 0
    revision: str | None = None


@dataclass(frozen=True)
class Division:
    """Triples with their split. ``no_evaluation`` is the reason if there are neither validation nor test triples."""

    frame: pd.DataFrame
    no_evaluation: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)


def read_graph(graph: GraphStore, on_progress: Callable[[int, int], None] = lambda done, total: None) -> ReadTriples:
    """Read every relation between two entities of a graph, by entity id.

    Relations that differ only in their dates are one triple. The revision is read first, so that a change in the meantime makes
    the triples look outdated and never current.
    """
    revision = graph.revision()
    total = graph.stats().relations
    names = {entity.id: entity.label for entity in graph.entities()}
    rows = []
    for number, r in enumerate(graph.relations(), 1):
        rows.append(
            (r.head_id, r.label, r.tail_id, names.get(r.head_id, r.head_id), names.get(r.tail_id, r.tail_id), r.score, "")
        )
        if number % 1000 == 0 or number == total:
            on_progress(number, total)
    frame, repeated = _frame(rows)
    return ReadTriples(frame, repeated=repeated, revision=revision)


def read_files(path: Path) -> ReadTriples:
    """Read triples from a file with three columns, or from a folder with train.txt, valid.txt and test.txt.

    Columns are separated by tabs, in a .csv by commas; an optional fourth column is a score. The name of an entity is also its
    id. Rows that can't be read are reported and the others kept.

    Raises:
        SettingsError: the file or folder does not exist or can't be read.
    """
    rows: list[TripleRow] = []
    bad: dict[str, str] = {}
    for split, file in _files(path):
        for line, fields in _lines(file):
            row = _triple(fields)
            if isinstance(row, str):
                bad[f"{file.name}, line {line}"] = row
            else:
                head, relation, tail, score = row
                rows.append((head, relation, tail, head, tail, score, split))
    frame, repeated = _frame(rows)
    return ReadTriples(frame, bad, repeated)


def divide(frame: pd.DataFrame, ratios: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 42) -> Division:
    """Split triples so that every entity and relation of validation and test is in train too.

    ``ratios`` are the shares of train, validation and test. A split that comes with the triples is kept, without those
    validation and test triples that train doesn't cover. Otherwise triples are drawn by the seed, independent of their order,
    as long as other train triples have their entities and relation. If there are too few triples for that, all are in train.
    """
    if (frame["split"] != "").any():
        return _given(frame)
    wanted = [round(ratio * len(frame)) for ratio in ratios[1:]]
    if not any(ratios[1:]):
        return Division(frame.assign(split=TRAIN), "kg.split has no share for validation and test")
    if any(ratio and not number for ratio, number in zip(ratios[1:], wanted, strict=True)):
        return Division(frame.assign(split=TRAIN), f"{len(frame)} triples are too few for validation and test triples")
    spare = _spare(frame, sum(wanted), seed)
    if len(spare) < sum(wanted):
        wanted[0] = len(spare) * wanted[0] // sum(wanted)
        wanted[1] = len(spare) - wanted[0]
        if any(ratio and not number for ratio, number in zip(ratios[1:], wanted, strict=True)):
            reason = "too few triples share their entities and relations with other triples"
            return Division(frame.assign(split=TRAIN), reason)
    split = np.full(len(frame), TRAIN, dtype=object)
    split[spare[: wanted[0]]] = VALIDATION
    split[spare[wanted[0] :]] = TEST
    return Division(frame.assign(split=pd.array(split, dtype="str")))


def fingerprint(frame: pd.DataFrame) -> str:
    """Identify triples, names and split: SHA-256, 16 hex digits. Scores don't count, since models don't use them."""
    digest = hashlib.sha256()
    for column in TRIPLE_COLUMNS:
        if column != "score":
            digest.update("\x1f".join(frame[column]).encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()[:16]


def uncovered(frame: pd.DataFrame) -> list[str]:
    """Entities and relations of validation and test triples that no train triple has."""
    train, rest = frame[frame["split"] == TRAIN], frame[frame["split"] != TRAIN]
    entities = {*rest["head_id"], *rest["tail_id"]} - {*train["head_id"], *train["tail_id"]}
    return sorted(entities | (set(rest["relation"]) - set(train["relation"])))


def _frame(rows: Sequence[TripleRow]) -> tuple[pd.DataFrame, int]:
    """Rows in order of their triples, each triple once: train before validation before test, then the best score."""
    frame = pd.DataFrame(rows, columns=list(TRIPLE_COLUMNS))
    frame = frame.astype({column: "float64" if column == "score" else "str" for column in TRIPLE_COLUMNS})
    rank = frame["split"].map({"": 0, **{name: place for place, name in enumerate(SPLITS)}})
    ordered = frame.assign(rank=rank).sort_values([*_KEYS, "rank", "score"], ascending=[True] * 4 + [False], kind="stable")
    kept = ordered.drop_duplicates(_KEYS).drop(columns="rank").reset_index(drop=True)
    return kept, len(frame) - len(kept)


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield "", path
        return
    if not path.is_dir():
        raise SettingsError(
            f"kg.triples is {path}, which does not exist. Name a file with three columns, or a folder with such files."
        )
    candidates = [(split, path / f"{stem}{end}") for split, stem in _FILES.items() for end in _ENDINGS]
    present = [(split, file) for split, file in candidates if file.is_file()]
    if not any(split == TRAIN for split, _ in present):
        raise SettingsError(f"kg.triples is the folder {path}, which has no train.txt, train.tsv or train.csv. Add one.")
    yield from present


def _lines(file: Path) -> Iterator[tuple[int, list[str] | str]]:
    """Fields by the number of the line where a row begins; a text instead of fields is a fault. Blank lines are skipped."""
    try:
        content = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise SettingsError(f"{file} (kg.triples) can't be read: {error.strerror}. Check its permissions.") from error
    yield from _csv_rows(content) if file.suffix == ".csv" else _tab_rows(content)


def _tab_rows(content: bytes) -> Iterator[tuple[int, list[str] | str]]:
    for number, line in enumerate(content.split(b"\n"), 1):
        text = _decoded(line.removesuffix(b"\r"))
        if isinstance(text, UnicodeDecodeError):
            yield number, _not_utf_8(text)
        elif text.strip():
            yield number, text.split("\t")


def _csv_rows(content: bytes) -> Iterator[tuple[int, list[str] | str]]:
    """Rows of a CSV file; a quoted field may hold line breaks, which become blanks."""
    reader = csv.reader(io.StringIO(content.decode("utf-8", "surrogateescape"), newline=""))
    begin = 1
    for fields in reader:
        row = [" ".join(field.splitlines()) for field in fields]
        broken = _decoded("\n".join(fields).encode("utf-8", "surrogateescape"))
        if isinstance(broken, UnicodeDecodeError):
            yield begin, _not_utf_8(broken)
        elif any(field.strip() for field in row):
            yield begin, row
        begin = reader.line_num + 1


def _decoded(content: bytes) -> str | UnicodeDecodeError:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error


def _not_utf_8(error: UnicodeDecodeError) -> str:
    return f"is not UTF-8 ({error.reason} at byte {error.start})"


def _triple(fields: list[str] | str) -> tuple[str, str, str, float] | str:
    """Head, relation, tail and score; or what is wrong with the row."""
    if isinstance(fields, str):
        return fields
    parts = [part.strip() for part in fields]
    if len(parts) not in (3, 4):
        return f"has {len(parts)} columns instead of three or four: head, relation, tail and an optional score"
    if blank := [name for name, part in zip(("head", "relation", "tail"), parts[:3], strict=True) if not part]:
        return f"the {' and the '.join(blank)} is blank"
    if len(parts) == 3:
        return parts[0], parts[1], parts[2], 1.0
    try:
        score = float(parts[3])
    except ValueError:
        score = math.nan
    return (parts[0], parts[1], parts[2], score) if math.isfinite(score) else f"the score {parts[3]!r} is not a number"


def _given(frame: pd.DataFrame) -> Division:
    uncovered_rows = _uncovered_rows(frame)
    left_out = {
        f"{row.head} {row.relation} {row.tail}": f"in {row.split}, but not all of its parts are in train"
        for row in uncovered_rows.itertuples()
    }
    kept = frame.drop(uncovered_rows.index).reset_index(drop=True)
    evaluated = kept["split"].isin((VALIDATION, TEST)).any()
    return Division(kept, None if evaluated else "the files have no validation or test triples", left_out)


def _spare(frame: pd.DataFrame, wanted: int, seed: int) -> list[int]:
    """Draw up to ``wanted`` rows whose entities and relation all remain in other rows."""
    order = np.random.default_rng(seed).permutation(len(frame))
    rows = list(frame[_KEYS].itertuples(index=False, name=None))
    uses = Counter(part for row in rows for part in _parts(row))
    spare: list[int] = []
    for place in order.tolist():
        if len(spare) == wanted:
            break
        parts = _parts(rows[place])
        if all(uses[part] > 1 for part in parts):
            uses.subtract(parts)
            spare.append(place)
    return spare


def _parts(row: tuple[str, str, str]) -> set[tuple[str, str]]:
    """Entities and relation of a triple; an entity and a relation of the same name are different parts."""
    head, relation, tail = row
    return {("entity", head), ("entity", tail), ("relation", relation)}


def _uncovered_rows(frame: pd.DataFrame) -> pd.DataFrame:
    train, rest = frame[frame["split"] == TRAIN], frame[frame["split"] != TRAIN]
    entities = {*train["head_id"], *train["tail_id"]}
    covered = rest["head_id"].isin(entities) & rest["tail_id"].isin(entities) & rest["relation"].isin(set(train["relation"]))
    return rest[~covered]
