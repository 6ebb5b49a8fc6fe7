"""A training in the UI: the training curve as a picture and the metrics as a table."""

import base64
from collections.abc import Sequence

from retrico_assets.kg.model_folder import Card

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 640, 240, 56, 24, 32
_LOSS, _VALIDATION = "#3b6fb6", "#c0562b"


def training_curve(card: Card) -> str:
    """Markdown with the loss by epoch and, with early stopping, the validation metric, each on its own scale."""
    if not card.losses:
        return ""
    epochs = len(card.losses)
    lines = [_curve(list(enumerate(card.losses, 1)), epochs, _LOSS)]
    legend = [f'<text x="{_LEFT}" y="14" fill="{_LOSS}">loss {card.losses[0]:.4g} to {card.losses[-1]:.4g}</text>']
    if card.validation:
        lines.append(_curve(card.validation, epochs, _VALIDATION))
        best = max(value for _, value in card.validation)
        legend.append(
            f'<text x="{_WIDTH - 12}" y="14" fill="{_VALIDATION}" text-anchor="end">'
            f"{_metric_name(card)} of validation, best {best:.3f}</text>"
        )
    bottom = _HEIGHT - _BOTTOM
    axes = (
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{_WIDTH - 12}" fill="none" stroke="#888"/>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 12}">1</text>'
        f'<text x="{_WIDTH - 12}" y="{_HEIGHT - 12}" text-anchor="end">epoch {epochs}</text>'
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{axes}{"".join(lines)}{"".join(legend)}</svg>'
    )
    return f"![loss by epoch](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def metrics_rows(card: Card) -> list[dict[str, object]]:
    """One row for each metric of the test triples."""
    names = {"mrr": "MRR", "hits_at_1": "Hits@1", "hits_at_3": "Hits@3", "hits_at_10": "Hits@10"}
    return [{"metric": names.get(name, name), "test": value} for name, value in card.metrics.items()]


def _metric_name(card: Card) -> str:
    last = card.validation_metric.rpartition(".")[2]
    return "MRR" if last == "inverse_harmonic_mean_rank" else last


def _curve(points: Sequence[tuple[int, float]], epochs: int, colour: str) -> str:
    low, high = min(value for _, value in points), max(value for _, value in points)
    width, height = _WIDTH - _LEFT - 12, _HEIGHT - _TOP - _BOTTOM
    step = max(1, len(points) // 300)

    def place(epoch: int, value: float) -> str:
        x = _LEFT + width * ((epoch - 1) / (epochs - 1) if epochs > 1 else 0.5)
        y = _TOP + 4 + (height - 8) * ((high - value) / (high - low) if high > low else 0.5)
        return f"{x:.1f},{y:.1f}"

    kept = [*points[:-1][::step], points[-1]]
    line = " ".join(place(*point) for point in kept)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>' for x, y in (place(*p).split(",") for p in kept[-1:]))
    return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>{dots}'
