"""What a KG model learns from: triples of a graph or of a file, and their division into train, validation and test."""

import csv
import hashlib
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


@dataclass(frozen=True)
class ReadTriples:
    """Triples as they were found, the rows that could not be read by place, and the revision of the graph they are from.

    ``frame`` has all of TRIPLE_COLUMNS; ``split`` is empty where nothing says it. ``repeated`` rows were left out as the same
    triple again.
    """

    frame: pd.DataFrame
    bad_rows: dict[str, str] = field(default_factory=dict)
    repeated: int = 0
    revision: str | None = None


@dataclass(frozen=True)
class Division:
    """Triples with their split. ``no_evaluation`` says why there is neither validation nor test, where there is none."""

    frame: pd.DataFrame
    no_evaluation: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)


def read_graph(graph: GraphStore, on_progress: Callable[[int, int], None] = lambda done, total: None) -> ReadTriples:
    """Every relation between two entities of a graph, by entity id.

    Relations that differ only in their dates are one triple. The revision is taken first: what changes meanwhile makes the
    triples look old, never new.
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
    """The triples of a file of three columns, or of a folder with train.txt, valid.txt and test.txt.

    Columns are separated by tabs, or by commas in a .csv; a fourth one is a score. A name is its entity's id as well. Rows
    that can't be read are reported and the others kept. SettingsError if there is nothing to read at that place.
    """
    rows: list[tuple] = []
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
    """Give each triple its split; every entity and relation of validation and test is in train too.

    A split that the triples came with is kept, without the validation and test triples that train doesn't cover. Else triples
    are drawn by the seed, whatever their order was, and taken out of train as long as their entities and relation stay
    in others. Too few triples to do that for each part: all are in train. ``ratios`` are checked by ``KGOptions.split``.
    """
    if (frame["split"] != "").any():
        return _given(frame)
    wanted = [round(ratio * len(frame)) for ratio in ratios[1:]]
    if not any(ratios[1:]):
        return Division(frame.assign(split=TRAIN), "the split leaves nothing for validation and test")
    if any(ratio and not number for ratio, number in zip(ratios[1:], wanted, strict=True)):
        return Division(frame.assign(split=TRAIN), f"{len(frame)} triples are too few to keep some for validation and test")
    spare = _spare(frame, sum(wanted), seed)
    if len(spare) < sum(wanted):
        wanted[0] = len(spare) * wanted[0] // sum(wanted)
        wanted[1] = len(spare) - wanted[0]
        if any(ratio and not number for ratio, number in zip(ratios[1:], wanted, strict=True)):
            reason = "too few triples share their entities and relations with others, to do without them in train"
            return Division(frame.assign(split=TRAIN), reason)
    split = np.full(len(frame), TRAIN, dtype=object)
    split[spare[: wanted[0]]] = VALIDATION
    split[spare[wanted[0] :]] = TEST
    return Division(frame.assign(split=pd.array(split, dtype="str")))


def fingerprint(frame: pd.DataFrame) -> str:
    """What identifies triples, names and split: SHA-256, 16 hex digits. Scores do not count, models don't see them."""
    digest = hashlib.sha256()
    for column in TRIPLE_COLUMNS:
        if column != "score":
            digest.update("\x1f".join(frame[column]).encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()[:16]


def uncovered(frame: pd.DataFrame) -> list[str]:
    """Entities and relations of validation and test that no triple of train has."""
    train, rest = frame[frame["split"] == TRAIN], frame[frame["split"] != TRAIN]
    entities = {*rest["head_id"], *rest["tail_id"]} - {*train["head_id"], *train["tail_id"]}
    return sorted(entities | (set(rest["relation"]) - set(train["relation"])))


def _frame(rows: Sequence[tuple]) -> tuple[pd.DataFrame, int]:
    """Rows in order of their triples, each once: the one that says most early in train, with the best score."""
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
        raise SettingsError(f"kg.triples names {path}, which does not exist; name a file of three columns, or a folder of such")
    found = [(split, path / f"{stem}{end}") for split, stem in _FILES.items() for end in _ENDINGS]
    present = [(split, file) for split, file in found if file.is_file()]
    if not any(split == TRAIN for split, _ in present):
        raise SettingsError(f"kg.triples names the folder {path}, but there is no train.txt in it (nor train.tsv, train.csv)")
    yield from present


def _lines(file: Path) -> Iterator[tuple[int, list[str] | str]]:
    """Fields by line number; a text instead of fields says what is wrong. Blank lines are passed over."""
    comma = file.suffix == ".csv"
    try:
        content = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise SettingsError(f"kg.triples names {file}, which can't be read: {error.strerror}; check its permissions") from error
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            text = line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError as error:
            yield number, f"it is no UTF-8 ({error.reason} at byte {error.start})"
            continue
        if text.strip():
            yield number, next(csv.reader([text])) if comma else text.split("\t")


def _triple(fields: list[str] | str) -> tuple[str, str, str, float] | str:
    """Head, relation, tail and score; or why it is none."""
    if isinstance(fields, str):
        return fields
    parts = [part.strip() for part in fields]
    if len(parts) not in (3, 4):
        return f"it has {len(parts)} columns; head, relation, tail (and perhaps a score) are wanted"
    if blank := [name for name, part in zip(("head", "relation", "tail"), parts[:3], strict=True) if not part]:
        return f"its {' and '.join(blank)} is blank"
    if len(parts) == 3:
        return parts[0], parts[1], parts[2], 1.0
    try:
        score = float(parts[3])
    except ValueError:
        score = math.nan
    return (parts[0], parts[1], parts[2], score) if math.isfinite(score) else f"its score {parts[3]!r} is no number"


def _given(frame: pd.DataFrame) -> Division:
    lost = _not_covered(frame)
    left_out = {
        f"{row.head} {row.relation} {row.tail}": f"it is in {row.split}, and not all of it is in train"
        for row in lost.itertuples()
    }
    kept = frame.drop(lost.index).reset_index(drop=True)
    evaluated = kept["split"].isin((VALIDATION, TEST)).any()
    return Division(kept, None if evaluated else "the files have no triples for validation or test", left_out)


def _spare(frame: pd.DataFrame, wanted: int, seed: int) -> list[int]:
    """Up to ``wanted`` rows, drawn by the seed, whose entities and relation all stay in other rows."""
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
    """Entities and relation of a triple, kept apart even if they are called alike."""
    head, relation, tail = row
    return {("entity", head), ("entity", tail), ("relation", relation)}


def _not_covered(frame: pd.DataFrame) -> pd.DataFrame:
    train, rest = frame[frame["split"] == TRAIN], frame[frame["split"] != TRAIN]
    entities = {*train["head_id"], *train["tail_id"]}
    fine = rest["head_id"].isin(entities) & rest["tail_id"].isin(entities) & rest["relation"].isin(set(train["relation"]))
    return rest[~fine]
