"""What a project's questions draw on (``retrieval.knowledge``): its documents, or the graph by a handle that loads nothing."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

GRAPH_STRATEGY = "graph"

_REFUSED = {
    "path": "a document location",
    "connection": "a document location",
    "query": "a document location",
    "format": "a loader option",
    "include": "a loader option",
    "exclude": "a loader option",
    "unit": "a loader option",
    "chunk_context": "a loader option",
    "chunk_context_model": "a loader option",
    "select": "a loader option",
    "max_tokens": "a loader option",
}


class KnowledgeEntry(BaseModel):
    """Documents of the project, or with type ``graph`` a handle on its graph; ``strategy`` is the way to look."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    type: Literal["documents", "graph"] = "documents"
    strategy: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _handle_loads_nothing(cls, entry: Any) -> Any:
        if not isinstance(entry, Mapping) or entry.get("type") != "graph":
            return entry
        faults = [
            f"{key} is {_REFUSED[key]}, and a graph handle loads nothing; remove it" for key in sorted(entry.keys() & _REFUSED)
        ]
        strategy = entry.get("strategy")
        if strategy not in (None, GRAPH_STRATEGY):
            faults.append(f"strategy is {strategy!r}, but that of a graph handle is {GRAPH_STRATEGY!r}; remove it")
        if faults:
            raise ValueError("; ".join(faults))
        return {**entry, "strategy": GRAPH_STRATEGY}


def check_entries(entries: Sequence[KnowledgeEntry]) -> Sequence[KnowledgeEntry]:
    """The entries. ValueError for names given twice, a second graph handle, and documents beside a graph handle."""
    names = [entry.name for entry in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the name {', '.join(map(repr, twice))} is given twice; name each entry once")
    handles = [entry.name for entry in entries if entry.type == "graph"]
    documents = [entry.name for entry in entries if entry.type == "documents"]
    if len(handles) > 1:
        raise ValueError(f"there are {len(handles)} graph handles ({', '.join(handles)}); keep one")
    if handles and documents:
        raise ValueError(
            f"{', '.join(documents)} (documents) stands beside the graph handle {handles[0]}; keep the handle alone, or remove it"
        )
    return entries


def strategies_of(entries: Sequence[KnowledgeEntry]) -> tuple[str, ...]:
    """The strategies that the entries name, each once: what a question uses that names none itself."""
    return tuple(dict.fromkeys(entry.strategy for entry in entries if entry.strategy))
