"""How well a ranking of documents covers those that a question needs."""

from collections.abc import Collection, Sequence


def recall_at(ranked: Sequence[str], wanted: Collection[str], k: int) -> float:
    """Share of the wanted documents that are among the first ``k``, 0 to 1."""
    return len(set(ranked[:k]) & set(wanted)) / len(set(wanted))


def all_at(ranked: Sequence[str], wanted: Collection[str], k: int) -> float:
    """1 if every wanted document is among the first ``k``, else 0."""
    return float(set(wanted) <= set(ranked[:k]))
