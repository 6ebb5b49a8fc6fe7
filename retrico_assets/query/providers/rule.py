"""Which provider serves the graph of a project, and the ranking of those that serve."""

from collections.abc import Sequence
from pathlib import Path

from resources.errors import GraphCapabilityError, SettingsError
from resources.plugins import known_plugins, plugin
from resources.records import Subgraph
from retrico_assets.query.providers.base import CORPUS, GraphProvider, stamped
from retrico_assets.query.providers.graph_handle import GRAPH_STRATEGY, strategies_of
from retrico_assets.query.providers.options import ProjectFacts
from retrico_assets.query.providers.project_graph import ProjectGraphProvider
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import check_strategies
from retrico_assets.query.retrievers.fusion import fuse
from retrico_assets.query.sources import Sources

_LIVE = "knowledge-tools"


def serving_providers(project: ProjectFacts) -> tuple[type[GraphProvider], ...]:
    """The providers that serve the project's graph: the one that claims it and is not a default, else the defaults.

    "knowledge-tools" also serves beside another one when ``retrieval.sources`` names it. The result may be empty.

    Raises:
        SettingsError: several providers that are not defaults claim the project, or a name is unknown.
    """
    claimants = [provider for provider in _candidates(project) if provider.claims(project)]
    special = [provider for provider in claimants if not provider.is_default]
    if len(special) > 1:
        names = ", ".join(provider.name for provider in special)
        raise SettingsError(
            f"{len(special)} graph providers claim this project: {names}. Name the one that should serve in "
            "retrieval.graph_providers, or remove the configuration of the others."
        )
    if not special:
        return tuple(claimants)
    live_too = _LIVE in project.retrieval.sources
    return tuple(provider for provider in claimants if not provider.is_default or (provider.name == _LIVE and live_too))


def check_retrieval(project: ProjectFacts, strategies: Sequence[str] | None, file: Path | None = None) -> None:
    """Check what a project says about retrieval; to be called when the definitions load.

    ``strategies`` are those of the section ``query``, and ``file`` is the project's, for the error to name.

    Raises:
        SettingsError: a name is unknown, or two settings contradict each other.
    """
    try:
        _check(project, strategies)
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}" if file else str(error)) from None


def _check(project: ProjectFacts, strategies: Sequence[str] | None) -> None:
    serving_providers(project)
    knowledge = project.retrieval.knowledge
    handles = [entry.name for entry in knowledge if entry.type == "graph"]
    if handles and strategies is not None and set(strategies) != {GRAPH_STRATEGY}:
        raise SettingsError(
            f"query.strategies is {list(strategies)}, but retrieval.knowledge has the graph handle {handles[0]!r}, whose "
            f"strategy is {GRAPH_STRATEGY!r}. Remove one of them."
        )
    if named := strategies_of(knowledge):
        check_strategies(named)


def require_graph(project: ProjectFacts) -> tuple[type[GraphProvider], ...]:
    """``serving_providers``, for retrieval that can't do without a graph.

    Raises:
        GraphCapabilityError: no provider claims the project.
    """
    serving = serving_providers(project)
    if not serving:
        names = ", ".join(provider.name for provider in _candidates(project))
        raise GraphCapabilityError(
            f"Graph retrieval needs a graph, but none of the graph providers ({names}) claims this project. "
            "Configure a corpus, a graph store or a Neo4j URI, and let retrieval.sources select it."
        )
    return serving


def open_providers(sources: Sources, *, only_if_it_can: bool = False) -> tuple[GraphProvider, ...]:
    """The providers that serve the project of these sources, ready to rank; without a project, the graph store given.

    A provider whose sources are missing (its store could not be opened) is left out if ``only_if_it_can``.

    Raises:
        SettingsError: otherwise, for such a provider.
    """
    project = sources.project
    if project is None:
        return () if ProjectGraphProvider.missing(sources) else (ProjectGraphProvider(sources),)
    serving = serving_providers(project)
    return tuple(provider.open(project, sources) for provider in serving if not (only_if_it_can and provider.missing(sources)))


def graph_ranking(providers: Sequence[GraphProvider], question: Question, k: int) -> Subgraph:
    """What the providers find, each hit with its ``source``; the rankings of several are fused to one."""
    rankings = {provider.name: stamped(provider.rank(question, k), provider.name) for provider in providers}
    return fuse(rankings, k) if len(rankings) > 1 else next(iter(rankings.values()), Subgraph())


def _candidates(project: ProjectFacts) -> list[type[GraphProvider]]:
    """The providers that may serve: those chosen, else all that are registered. Checks the selected sources, too."""
    registered = known_plugins("providers")
    chosen = [_provider(name) for name in dict.fromkeys(project.retrieval.graph_providers or registered)]
    sources = {CORPUS, *registered, *(provider.name for provider in chosen)}
    unknown = [name for name in project.retrieval.sources if name not in sources]
    if unknown:
        known = ", ".join(sorted(sources))
        raise SettingsError(f"retrieval.sources: unknown source {', '.join(map(repr, unknown))}. Known sources: {known}.")
    return chosen


def _provider(name: str) -> type[GraphProvider]:
    try:
        return plugin("providers", name, GraphProvider)  # type: ignore[type-abstract]
    except SettingsError as error:
        raise SettingsError(f"retrieval.graph_providers: {error}") from None
