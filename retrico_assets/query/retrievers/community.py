"""Strategy "community": the communities whose summaries answer the question, and their members."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from resources.errors import NotBuiltError
from resources.options import Options
from resources.records import Community, Neighbourhood, Scored, Subgraph
from resources.text.names import identity_key
from retrico_assets.embeddings.sync import COMMUNITY_INDEX
from retrico_assets.query.question.question import LONGEST_QUESTION, Question
from retrico_assets.query.retrievers.base import MOST_HOPS, MOST_RESULTS, Retriever
from retrico_assets.query.retrievers.meaning import search_index
from retrico_assets.query.retrievers.ranking import around_entities, unit
from retrico_assets.query.sources import Need

_REMEDY = "detect and embed communities first (retrico community; asset community_embeddings)"
_HITS_A_COMMUNITY = 4
_RELATIONS_A_MEMBER = 2
_LINKED = 0.75
_MOST_MEMBERS = 200


class CommunityOptions(Options):
    communities: int = Field(default=3, ge=1, le=MOST_RESULTS)
    level: int | None = Field(default=None, ge=0)
    hops: int = Field(default=0, ge=0, le=MOST_HOPS)


class CommunityRetriever(Retriever):
    """Searches the communities' vectors with the question and ranks the members of the best ``communities``.

    ``level`` keeps to communities of one level; without it, one that holds or lies in a better one is passed over, since it
    would bring the same members again. A member's score is the similarity of its community x 1 if the question names it,
    3/4 if a relation links it to an entity that the question names, else 1/4 to 3/4 by its share of relations inside the
    community (the member with most of them has 3/4). From there ``hops`` relations further and all scores as
    ``around_entities`` says. Together they give 200 members: of one that has more than its part, those that the
    question names, then those at the ends of most of the members' best relations.
    """

    name: ClassVar[str] = "community"
    needs: ClassVar[frozenset[Need]] = frozenset(("graph", "texts", "vectors", "embedder"))
    wants: ClassVar[frozenset[Need]] = frozenset(("names",))
    options = CommunityOptions
    config: CommunityOptions

    def search(self, question: Question, k: int) -> Subgraph:
        if not identity_key(question.text):
            return Subgraph()
        best = self._best(question.text[:LONGEST_QUESTION])
        named = {entity.id for entity in question.entities}
        members = self._members([found.record for found in best], named)
        around = self.graph.neighbourhood(sorted(set().union(*members.values())), self.config.hops, limit=_MOST_MEMBERS)
        seeds = _member_scores(best, members, around, named)
        return around_entities(question.text, seeds, around, self.texts, self.graph, k)

    def _best(self, text: str) -> list[Scored[Community]]:
        """The communities to draw on, best first. More and more are looked at until enough of them differ."""
        info = self.vectors.describe(COMMUNITY_INDEX)
        if info is None or info.count == 0:
            sizes = {len(community.member_ids) for community in self.graph.communities()}
            if info is not None and sizes == {1}:
                return []  # nothing but entities that stand alone, which are not embedded
            raise NotBuiltError(f"there are no communities to search: {_REMEDY}")
        wanted = _HITS_A_COMMUNITY * self.config.communities
        while True:
            hits = search_index(self.vectors, self.embedder, COMMUNITY_INDEX, [text], wanted)[0]
            known = {community.id: community for community in self.graph.find_communities([hit.record for hit in hits])}
            found = [Scored(known[hit.record], unit(hit.score)) for hit in hits if hit.record in known]
            best = self._distinct(found)[: self.config.communities]
            if len(best) == self.config.communities or len(hits) < wanted:
                break
            wanted *= _HITS_A_COMMUNITY
        if hits and not found:
            raise NotBuiltError(f"the graph holds none of the communities that were embedded: {_REMEDY}")
        if found and not best:
            levels = ", ".join(map(str, sorted({one.record.level for one in found})))
            raise NotBuiltError(f"there is no community of level {self.config.level}; the graph has levels {levels}")
        return [one for one in best if one.score > 0]

    def _distinct(self, found: Sequence[Scored[Community]]) -> list[Scored[Community]]:
        if self.config.level is not None:
            return [one for one in found if one.record.level == self.config.level]
        kept: list[Scored[Community]] = []
        sets: list[frozenset[str]] = []
        for one in found:
            members = frozenset(one.record.member_ids)
            if not any(members <= other or members >= other for other in sets):
                kept.append(one)
                sets.append(members)
        return kept

    def _members(self, communities: Sequence[Community], named: set[str]) -> dict[str, set[str]]:
        """The members of each community that count, by its id."""
        most = max(_MOST_MEMBERS // max(len(communities), 1), 1)
        members = {community.id: set(community.member_ids) for community in communities}
        many = sorted({id for some in members.values() if len(some) > most for id in some})
        relations = self.graph.find_relations(head_ids=many, limit=_RELATIONS_A_MEMBER * _MOST_MEMBERS) if many else []
        ends = Counter(end for relation in relations for end in (relation.head_id, relation.tail_id))
        for id, some in members.items():
            if len(some) > most:
                members[id] = set(sorted(some, key=lambda one: (one not in named, -ends[one], one))[:most])
        return members


def _member_scores(
    best: Sequence[Scored[Community]], members: Mapping[str, set[str]], around: Neighbourhood, named: set[str]
) -> dict[str, float]:
    """The score of each member that the graph still has; of one in several communities the best."""
    present = {entity.id for entity, _ in around.entities}
    ends = [(relation.head_id, relation.tail_id) for relation in around.relations]
    linked = {that for pair in ends for this, that in (pair, pair[::-1]) if this in named}
    scores: dict[str, float] = {}
    for found in best:
        inside = members[found.record.id] & present
        degree = Counter(end for head, tail in ends if head in inside and tail in inside for end in (head, tail))
        most = max(degree.values(), default=0)
        for id in inside:
            share = 0.25 + 0.5 * (degree[id] / most if most else 0.0)
            standing = 1.0 if id in named else _LINKED if id in linked else share
            scores[id] = max(scores.get(id, 0.0), found.score * standing)
    return scores
