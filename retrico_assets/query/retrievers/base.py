"""What every retriever does, and how one is found by name."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from resources.errors import SettingsError, StoreError
from resources.options import Options
from resources.plugins import known_plugins, missing_packages, plugin
from resources.records import Subgraph
from retrico_assets.query.question.question import Question
from retrico_assets.query.retrievers.result import checked_result
from retrico_assets.query.sources import Sources, UsesSources

MOST_HOPS = 10
MOST_RESULTS = 1000


class Retriever(UsesSources):
    """One way to find what answers a question: a strategy.

    A subclass has a name, says what it needs, and implements ``search``. ``self.config`` holds its options.
    """

    options: ClassVar[type[Options]] = Options
    """Its own options: the keys below ``query.options.<strategy>`` in project.yaml."""

    config: Options
    """An instance of ``options``. A subclass with options of its own annotates it with their class."""

    def __init__(self, sources: Sources, config: Options | None = None) -> None:
        """Take the sources and the options; by default each option has its default.

        Raises:
            SettingsError: a source that is needed is missing.
        """
        super().__init__(sources)
        self.config = self.options() if config is None else config

    def retrieve(self, question: Question, k: int) -> Subgraph:
        """Find the best ``k`` entities, relations and chunks, ranked, each once, with finite scores.

        The ends of the relations are always among the entities: those that ``k`` would cut are appended. When nothing is
        found, the result is empty.

        Raises:
            RetrievalError: the strategy returned something that is not a ranking of records.
            StoreError: the strategy needs the entities that the question names, and they could not be looked up.
        """
        if question.fault is not None and "names" in self.needs:
            raise StoreError(question.fault)
        return checked_result(self.search(question, k), self.name)

    @abstractmethod
    def search(self, question: Question, k: int) -> Subgraph:
        """Do the work of ``retrieve``: what a strategy implements. Any error it raises is reported as its failure."""


def known_strategies() -> tuple[str, ...]:
    """The names of all registered strategies, sorted."""
    return tuple(known_plugins("retrievers"))


def check_strategies(names: Sequence[str]) -> tuple[str, ...]:
    """The strategies in order, each once. A strategy is a registered name, or "module:Class" for a custom one.

    Raises:
        SettingsError: there is no name, or one is unknown (the message lists the known ones) or can't be imported.
    """
    known = f'Known strategies: {", ".join(known_strategies())}; or write "module:Class" for your own.'
    if isinstance(names, str) or not names:
        raise SettingsError(f"The strategies are {names!r}. They must be a list of names. {known}")
    unknown = [name for name in names if ":" not in name and name not in known_strategies()]
    if unknown:
        raise SettingsError(f"Unknown strategy {', '.join(map(repr, unknown))}. {known}")
    for name in names:
        if ":" in name:
            plugin("retrievers", name, Retriever)  # type: ignore[type-abstract]
    return tuple(dict.fromkeys(names))


def retriever_class(name: str) -> type[Retriever]:
    """The class of a strategy.

    Raises:
        SettingsError: as ``check_strategies``.
    """
    check_strategies([name])
    return plugin("retrievers", name, Retriever)  # type: ignore[type-abstract]


def check_options(name: str, options: Mapping[str, Any]) -> Options:
    """The options of a strategy.

    Raises:
        SettingsError: names the strategy, the option, what is wrong with it and which options there are.
    """
    return retriever_class(name).options.parse(options, name)


def make_retriever(name: str, sources: Sources, options: Mapping[str, Any] | None = None) -> Retriever:
    """The retriever of that name.

    Raises:
        SettingsError: the name or an option is unknown, or a source or package that the strategy needs is missing.
    """
    found = retriever_class(name)
    if missing := missing_packages(found):
        raise SettingsError(f"Strategy {name!r} needs the package {' and '.join(missing)}. Install it.")
    return found(sources, check_options(name, options or {}))


def check_limits(top_k: int, hops: int | None) -> None:
    """SettingsError unless 1 <= top_k <= MOST_RESULTS and 0 <= hops <= MOST_HOPS (None: each strategy's own)."""
    if not 1 <= top_k <= MOST_RESULTS:
        raise SettingsError(f"top_k is {top_k}. It must be from 1 to {MOST_RESULTS}.")
    if hops is not None and not 0 <= hops <= MOST_HOPS:
        raise SettingsError(f"hops is {hops}. It must be from 0 to {MOST_HOPS}.")
