"""Gives the communities of a graph titles and summaries, from the finest level to the coarsest."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from resources.graph.base import GraphStore
from resources.models.llm.client import ChatModel
from resources.records import Chunk, Community
from resources.texts.base import TextStore
from retrico_assets.communities.content import Content, Contents, excerpts
from retrico_assets.communities.extractive import METHOD, extract
from retrico_assets.communities.options import CommunityOptions
from retrico_assets.communities.update import read_state, write_state
from retrico_assets.communities.written import Writer, Written


@dataclass
class Summarised:
    """The communities with their texts, and how these came about.

    ``same``: taken over from the only community below; ``failures``: why the model wrote nothing, by community; ``not_asked``
    of them because a limit came first. They have an extractive summary meanwhile, and the model is asked again next time.
    """

    communities: list[Community] = field(default_factory=list)
    by_model: int = 0
    extractive: int = 0
    same: int = 0
    unchanged: int = 0
    not_asked: int = 0
    written: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


def summarise_communities(
    store: GraphStore,
    texts: TextStore,
    llm: ChatModel | None,
    state_file: Path,
    options: CommunityOptions | None = None,
    *,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summarised:
    """Write the summaries that are missing or whose communities have changed, and store them.

    A community is summarised from its ``top_k`` best-connected members, their relations and source chunks; one that was joined
    from several, from their summaries. The model writes the biggest communities first, several at the same time, within
    ``token_budget`` for each and ``token_limit`` for all (0: it is not used). Without a model, and for entities that no relation
    joins, the summary is extractive. Each level is stored when it is done. ``state_file`` records what summaries are made from.
    """
    options = options or CommunityOptions()
    stored = store.communities()
    writer = None
    if llm is not None and options.token_limit != 0:
        writer = Writer(llm, options.token_budget, options.token_limit)
    contents = Contents(store.entities(), store.relations(), options.top_k)
    job = _Job(texts, contents, writer, read_state(state_file), {community.id: community for community in stored}, on_progress)
    for level in sorted({community.level for community in stored}):
        if job.bring_up_to_date([community for community in stored if community.level == level]):
            job.result.written += store.replace_communities(list(job.communities.values()))
            write_state(state_file, {id_: print_ for id_, print_ in job.known.items() if id_ in job.communities})
    job.result.communities = sorted(job.communities.values(), key=lambda community: (community.level, community.id))
    return job.result


class _Job:
    """The communities under way: ``communities`` by id, ``known`` the fingerprints of what their texts were made from."""

    def __init__(
        self,
        texts: TextStore,
        contents: Contents,
        writer: Writer | None,
        known: dict[str, str],
        communities: dict[str, Community],
        on_progress: Callable[[int, int], None],
    ) -> None:
        self.communities = communities
        self.known = known
        self.result = Summarised()
        self._texts = texts
        self._contents = contents
        self._writer = writer
        self._on_progress = on_progress
        self._done = 0
        self._children: defaultdict[str | None, list[str]] = defaultdict(list)
        for community in communities.values():
            self._children[community.parent_id].append(community.id)

    def bring_up_to_date(self, level: Sequence[Community]) -> bool:
        """Give the communities of one level their texts, those below being done. Returns whether anything changed."""
        before = {community.id: community for community in level}
        stale = sorted(self._stale(level), key=lambda content: (-len(content.community.member_ids), content.community.id))
        self._done += len(level) - len(stale)
        chunks = self._texts.get_chunks(sorted({id_ for content in stale for id_ in content.chunk_ids}))
        asked = [content for content in stale if self._writer and content.is_connected]
        for content in stale:
            if not (self._writer and content.is_connected):
                self.result.extractive += 1
                self._settle(content, *extract(content, excerpts(content, chunks)), is_final=True)
        if self._writer and asked:
            self._let_write(self._writer, asked, chunks)
        return bool(stale) or any(self.communities[id_] != community for id_, community in before.items())

    def _stale(self, level: Sequence[Community]) -> Iterator[Content]:
        """What has no text yet, or one made from something else. A community with one part says what the part says."""
        for community in level:
            parts = [self.communities[id_] for id_ in self._children[community.id]]
            if len(parts) == 1:
                self.communities[community.id] = replace(community, title=parts[0].title, summary=parts[0].summary)
                self.result.same += 1
                continue
            content = self._contents.of(community, parts)
            if community.summary and self.known.get(community.id) == self._fingerprint(content):
                self.result.unchanged += 1
            else:
                yield content

    def _let_write(self, writer: Writer, contents: Sequence[Content], chunks: Mapping[str, Chunk]) -> None:
        with ThreadPoolExecutor(writer.parallel, "summaries") as pool:
            running = {pool.submit(writer.write, content, excerpts(content, chunks)): content for content in contents}
            try:
                for future in as_completed(running):
                    content, written = running[future], future.result()
                    title, summary = extract(content, excerpts(content, chunks))
                    if written.summary:
                        title, summary = written.title or title, written.summary
                    self._count(written, f"{title} ({content.community.id})")
                    self._settle(content, title, summary, is_final=bool(written.summary))
            finally:
                pool.shutdown(cancel_futures=True)

    def _settle(self, content: Content, title: str, summary: str, is_final: bool) -> None:
        id_ = content.community.id
        self.communities[id_] = replace(content.community, title=title, summary=summary)
        if is_final:
            self.known[id_] = self._fingerprint(content)
        else:
            self.known.pop(id_, None)
        self._done += 1
        self._on_progress(self._done, len(self.communities))

    def _count(self, written: Written, name: str) -> None:
        if written.summary:
            self.result.by_model += 1
        else:
            self.result.extractive += 1
            self.result.not_asked += not written.was_asked
            self.result.failures[name] = written.fault
        if written.note:
            self.result.notes[name] = written.note

    def _fingerprint(self, content: Content) -> str:
        return content.fingerprint(self._writer.fingerprint if self._writer and content.is_connected else METHOD)
