"""How a question is answered: what the question, the project and the defaults say, merged and checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.errors import SettingsError
from retrico_assets.query.answering.reason import TOKEN_BUDGET
from retrico_assets.query.options import ChunkSource, FusionOptions, QueryOptions
from retrico_assets.query.retrievers.base import check_options, check_strategies, retriever_class

DEFAULT_STRATEGIES = ("pagerank",)

StrategyOptions = Mapping[str, Mapping[str, Any]]
"""Options by strategy."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question is answered.

    ``options`` are those of each strategy. The reranker reads ``reranked`` chunks, 0 without one; the language model is shown
    ``token_budget`` tokens of evidence.

    Raises:
        SettingsError: a strategy or one of its options is unknown, or options contradict each other.
    """

    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    options: StrategyOptions = field(default_factory=dict)
    fusion: FusionOptions = field(default_factory=FusionOptions)
    top_k: int = 10
    reranked: int = 0
    chunk_source: ChunkSource = "all"
    token_budget: int = TOKEN_BUDGET

    def __post_init__(self) -> None:
        check_strategies(self.strategies)
        if self.fusion.weights:
            check_strategies(list(self.fusion.weights))
        self.fusion.check_for(self.strategies)
        for name, options in self.options.items():
            check_options(name, options)
        if self.reranked < 0:
            raise SettingsError(f"The number of chunks to rerank is {self.reranked}. It must be 0 or more.")

    @property
    def depth(self) -> int:
        """How many results each strategy finds: the reranker needs more chunks to choose from than are kept."""
        return max(self.top_k, self.reranked)

    @property
    def uses_names(self) -> bool:
        """Whether any of the strategies uses the entities that the question names."""
        kinds = [retriever_class(name) for name in self.strategies]
        return any("names" in kind.needs | kind.wants for kind in kinds)


def check_query(query: QueryOptions, where: str = "query") -> None:
    """Check the strategies that a project names, and their options.

    Raises:
        SettingsError: one is unknown, or an option is wrong. The message names its key below ``where``.
    """
    if query.strategies is not None:
        _check_at(f"{where}.strategies", check_strategies, query.strategies)
    if query.fusion.weights:
        _check_at(f"{where}.fusion.weights", check_strategies, list(query.fusion.weights))
    for strategy, options in query.options.items():
        _check_at(f"{where}.options", check_options, strategy, options)


def _check_at(key: str, check: Callable[..., Any], *values: Any) -> None:
    try:
        check(*values)
    except SettingsError as error:
        raise SettingsError(f"{key}: {error}") from None


@dataclass(frozen=True, slots=True)
class OptionLayer:
    """Options of strategies from one place: ``shared`` by every strategy that has such an option (None: not set), and by name."""

    shared: Mapping[str, Any] = field(default_factory=dict)
    by_strategy: StrategyOptions = field(default_factory=dict)


def make_plan(
    query: QueryOptions,
    own: OptionLayer,
    project: OptionLayer | None = None,
    *,
    reranked: int = 0,
    token_budget: int = TOKEN_BUDGET,
) -> Plan:
    """The plan for one question.

    Args:
        query: the options in force. Options of strategies count only as part of a layer.
        own: options of strategies that the question sets itself; they win over those of the project.
        project: options of strategies that the project sets.
        reranked: how many chunks the reranker reads; 0 without one.
        token_budget: how much evidence the language model is shown, in tokens.

    Raises:
        SettingsError: something is unknown or without effect, or options contradict each other.
    """
    strategies = check_strategies(DEFAULT_STRATEGIES if query.strategies is None else query.strategies)
    check_effect(own.shared, strategies)
    options = merge_options(strategies, [project or OptionLayer(), own])
    return Plan(strategies, options, query.fusion, query.top_k, reranked, query.chunk_source, token_budget)


def plan_for_project(
    asked: Mapping[str, Any],
    project: QueryOptions,
    *,
    default_strategies: Sequence[str] = DEFAULT_STRATEGIES,
    token_budget: int = TOKEN_BUDGET,
) -> Plan:
    """The plan for one question of a project.

    Args:
        asked: what the question sets itself, by the names of QueryConfig; None means as the project says.
        project: the section ``query`` of project.yaml.
        default_strategies: used when neither the question nor the project names strategies.
        token_budget: how much evidence the language model is shown, in tokens.

    Raises:
        SettingsError: an option is unknown, out of range, without effect, or contradicts another.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    fusion = {"method": given.get("fusion"), "k": given.get("rrf_k")}
    fusion |= {name: given.get(name) for name in ("weights", "min_sources")}
    query = project.replace(
        {
            "strategies": given.get("strategies", project.strategies or list(default_strategies)),
            "fusion": project.fusion.replace(fusion, "fusion"),
            **{name: given.get(name) for name in ("top_k", "hops", "chunk_source")},
        }
    )
    names = check_strategies(query.strategies or ())
    shared = {name: given.get(name) for name in ("hops", "active_after", "active_before")}
    _check_asked("weights", given.get("weights", {}), names)
    own = OptionLayer(shared, given.get("options", {}))
    reranked = _reranked(given.get("rerank"), project)
    return make_plan(query, own, project_layer(project, names), reranked=reranked, token_budget=token_budget)


def project_layer(project: QueryOptions, strategies: Sequence[str]) -> OptionLayer:
    """What the project sets for these strategies."""
    options = {name: values for name, values in project.options.items() if name in strategies}
    return OptionLayer({"hops": project.hops}, options)


def merge_options(strategies: Sequence[str], layers: Sequence[OptionLayer]) -> dict[str, dict[str, Any]]:
    """The options of each strategy.

    A later layer wins; within a layer, an option of one strategy wins over what is shared.

    Raises:
        SettingsError: a layer has options of a strategy that is not among these.
    """
    merged: dict[str, dict[str, Any]] = {name: {} for name in strategies}
    for layer in layers:
        _check_asked("options", layer.by_strategy, strategies)
        for name, options in merged.items():
            options |= _options_from(layer, name)
    return {name: options for name, options in merged.items() if options}


def check_effect(shared: Mapping[str, Any], strategies: Sequence[str]) -> None:
    """Check that each shared option that is set has an effect.

    Raises:
        SettingsError: none of the strategies has such an option.
    """
    for option, value in shared.items():
        if value is not None and not any(_has_option(name, option) for name in strategies):
            raise SettingsError(
                f"{option}={value} has no effect: none of the selected strategies ({', '.join(strategies)}) supports it. "
                'Add a strategy that does, such as "entity".'
            )


def _options_from(layer: OptionLayer, strategy: str) -> dict[str, Any]:
    own = layer.by_strategy.get(strategy, {})
    if not isinstance(own, Mapping):
        raise SettingsError(f"The options of strategy {strategy!r} are {own!r}. They must be names and values.")
    shared = {name: value for name, value in layer.shared.items() if value is not None and _has_option(strategy, name)}
    return shared | dict(own)


def _has_option(strategy: str, option: str) -> bool:
    return option in retriever_class(strategy).options.model_fields


def _check_asked(what: str, by_strategy: Mapping[str, Any], strategies: Sequence[str]) -> None:
    others = [name for name in by_strategy if name not in strategies]
    if others:
        raise SettingsError(
            f"There are {what} for {', '.join(map(repr, others))}, but the selected strategies are {', '.join(strategies)}. "
            "Select that strategy too, or remove them."
        )


def _reranked(wanted: bool | None, project: QueryOptions) -> int:
    if project.reranker is None:
        if wanted:
            raise SettingsError("rerank is true, but the project has no reranker. Set query.reranker in project.yaml.")
        return 0
    return 0 if wanted is False else project.reranker.top
