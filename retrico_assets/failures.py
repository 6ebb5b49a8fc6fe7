"""Failures of steps in plain words, without a trace through Dagster."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import dagster as dg

from resources.errors import RetricoError

P = ParamSpec("P")
T = TypeVar("T")


def as_dagster_failure(step: Callable[P, T]) -> Callable[P, T]:
    """Raise a step's RetricoError as a Dagster Failure with the same message. Other errors keep their trace."""

    @wraps(step)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return step(*args, **kwargs)
        except RetricoError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error

    return run
