"""`retrico query`: the job `query`, and its result."""

from collections.abc import Sequence
from typing import Any

from retrico_assets.cli.build import failures
from retrico_assets.cli.instance import opened_instance, run_job


def query(
    question: str, strategies: Sequence[str], top_k: int | None, hops: int | None, log_level: str
) -> tuple[Any, tuple[str, ...]]:
    """Run the job `query`; returns its result (None if it did not end) and what failed, in words."""
    config: dict[str, Any] = {"question": question}
    if strategies:
        config["strategies"] = list(strategies)
    if top_k is not None:
        config["top_k"] = top_k
    if hops is not None:
        config["hops"] = hops
    with opened_instance() as instance:
        result = run_job("query", {"ops": {"parse_question": {"config": config}}}, instance, log_level)
    failed = tuple(failures(result))
    return (None, failed) if not result.success else (result.output_for_node("reason"), failed)
