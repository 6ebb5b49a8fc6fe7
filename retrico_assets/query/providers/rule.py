"""Which provider serves the graph of a project, and asking those that serve."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from resources.errors import GraphCapabilityError, SettingsError
from resources.records import Subgraph
from retrico_assets.query.providers.base import CORPUS, GraphProvider, stamped
from retrico_assets.query.providers.graph_handle import GRAPH_STRATEGY, strategies_of
from retrico_assets.query.providers.project_graph import ProjectGraphProvider
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.base import Sources, check_strategies
from retrico_assets.query.retrievers.fusion import fuse
from retrico_assets.settings import ProjectSettings

PROVIDERS: dict[str, str] = {
    "in-memory": "retrico_assets.query.providers.in_memory:InMemoryProvider",
    "knowledge-tools": "retrico_assets.query.providers.live_triples:KnowledgeToolsProvider",
    "neo4j": "retrico_assets.query.providers.neo4j:Neo4jProvider",
    "falkordb": "retrico_assets.query.providers.project_graph:FalkorDBProvider",
}
"""Where the class of each provider is. ``retrieval.graph_providers`` chooses among them and adds one's own."""

_LIVE = "knowledge-tools"


def serving_providers(settings: ProjectSettings) -> tuple[type[GraphProvider], ...]:
    """The providers that serve the project's graph: of those that claim it the one that is no default, else the defaults.

    Beside either serves "knowledge-tools" when ``retrieval.sources`` names it. None is no error here. SettingsError when
    two or more that are no defaults claim, and for names that mean nothing.
    """
    known = _known(settings)
    claimants = [provider for provider in known if provider.claims(settings)]
    own = [provider for provider in claimants if not provider.is_default]
    if len(own) > 1:
        names = ", ".join(provider.name for provider in own)
        raise SettingsError(
            f"{len(own)} graph providers claim this project: {names}; name the one that is to serve in "
            "retrieval.graph_providers, or take away the configuration of the others"
        )
    if not own:
        return tuple(claimants)
    return tuple(p for p in claimants if not p.is_default or (p.name == _LIVE and _LIVE in settings.retrieval.sources))


def check_retrieval(settings: ProjectSettings, file: Path | None = None) -> None:
    """SettingsError for what a project says of retrieval and can't be: to be called when the definitions load.

    ``file`` is the project's, for the error to name.
    """
    try:
        _check(settings)
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}" if file else str(error)) from None


def _check(settings: ProjectSettings) -> None:
    serving_providers(settings)
    handles = [entry.name for entry in settings.retrieval.knowledge if entry.type == "graph"]
    named = settings.query.strategies
    if handles and named is not None and set(named) != {GRAPH_STRATEGY}:
        raise SettingsError(
            f"query.strategies is {named}, but retrieval.knowledge has the graph handle {handles[0]!r}, whose strategy is "
            f"{GRAPH_STRATEGY!r}; remove one of them"
        )
    own = strategies_of(settings.retrieval.knowledge)
    if own:
        check_strategies(own)


def require_graph(settings: ProjectSettings) -> tuple[type[GraphProvider], ...]:
    """``serving_providers``, for retrieval that can do with nothing else: GraphCapabilityError when none claims."""
    serving = serving_providers(settings)
    if not serving:
        raise GraphCapabilityError(
            f"graph retrieval is asked for, but none of the graph providers ({', '.join(p.name for p in _known(settings))}) "
            "claims this project; give it a corpus, a graph store or a Neo4j URI, and let retrieval.sources select it"
        )
    return serving


def open_providers(
    settings: ProjectSettings | None, sources: Sources, *, only_if_it_can: bool = False
) -> tuple[GraphProvider, ...]:
    """The providers that serve a project, ready to rank; without a project, the graph store that the caller gave.

    One whose sources are missing (its store could not be opened) is left out if ``only_if_it_can``, else a SettingsError.
    """
    if settings is None:
        if sources.graph is None or sources.texts is None:
            return ()
        return (ProjectGraphProvider(sources.graph, sources.texts),)
    opened = []
    for provider in serving_providers(settings):
        missing = _missing(provider, sources)
        if not missing:
            opened.append(provider.open(settings, sources))
        elif not only_if_it_can:
            raise SettingsError(f"graph provider {provider.name!r} serves this project and needs {', '.join(missing)}; give it")
    return tuple(opened)


def _missing(provider: type[GraphProvider], sources: Sources) -> list[str]:
    return sorted(need for need in provider.needs - {"names"} if getattr(sources, need) is None)


def graph_ranking(providers: Sequence[GraphProvider], question: Question, k: int) -> Subgraph:
    """What the providers found, each hit with its ``source``; the rankings of several are fused to one."""
    found = {provider.name: stamped(provider.rank(question, k), provider.name) for provider in providers}
    return fuse(found, k) if len(found) > 1 else next(iter(found.values()), Subgraph())


def _known(settings: ProjectSettings) -> list[type[GraphProvider]]:
    """The providers that may serve: those chosen, else all that come with the house. SettingsError for unknown names."""
    found = [_load(name) for name in dict.fromkeys(settings.retrieval.graph_providers or PROVIDERS)]
    sources = {CORPUS, *PROVIDERS, *(provider.name for provider in found)}
    unknown = [name for name in settings.retrieval.sources if name not in sources]
    if unknown:
        raise SettingsError(
            f"retrieval.sources: unknown source {', '.join(map(repr, unknown))}; known are: {', '.join(sorted(sources))}"
        )
    return found


def _load(name: str) -> type[GraphProvider]:
    module, _, attribute = PROVIDERS.get(name, name).partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), attribute) if attribute else None
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"retrieval.graph_providers: {name!r} can't be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, GraphProvider)):
        raise SettingsError(
            f"retrieval.graph_providers: {name!r} is no graph provider; known are: {', '.join(PROVIDERS)}, "
            "and 'module:Class' for one of your own (a GraphProvider)"
        )
    return found
