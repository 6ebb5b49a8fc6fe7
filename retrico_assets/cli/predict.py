"""`retrico predict`: the project's KG model, asked by name."""

from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

from retrico_assets.kg.model_folder import MODEL_FOLDER
from retrico_assets.kg.predict import complete
from retrico_assets.kg.score import KGModel
from retrico_assets.settings import ProjectSettings


def predict(
    settings: ProjectSettings, head: str | None, relation: str, tail: str | None, top: int, threshold: float
) -> tuple[dict[str, Any], str]:
    """The predictions as `--json` prints them, and a warning if the model is older than the graph."""
    model = KGModel.open(settings.data_folder / MODEL_FOLDER)
    from_graph = model.card.revision is not None
    with settings.stores.graph.open(settings.data_folder / "graph") if from_graph else nullcontext() as graph:
        found = complete(model, relation, head, tail, graph=graph, top=top, threshold=threshold)
        caveats = [] if graph is None else model.caveats(graph.revision(), {})
    return {
        "predictions": [asdict(one) for one in found],
        "model": model.card.model,
        "older_than_graph": bool(caveats),
    }, "; ".join(caveats)


def lines(result: dict[str, Any]) -> list[str]:
    """The predictions for people, one a line."""
    rows = result["predictions"]
    if not rows:
        return ["nothing is that plausible and not stated yet"]
    return [_line(**row) for row in rows]


def _line(head: str, relation: str, tail: str, score: float, stated: bool, **_: str) -> str:
    return f"{score:.3f}  {head}  {relation}  {tail}{'  (stated)' if stated else ''}"
