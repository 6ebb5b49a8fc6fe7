from resources.records import Mention, RelationMention
from retrico_assets.graph.identity import entity_id, relation_id, resolve


def mention(text, label="person", chunk="c1", start=0, score=0.9, linked_id=None):
    return Mention(chunk, "d", start, start + len(text), text, label, score, linked_id)


def relation(head, tail, label="knows", chunk="c1", score=0.5, **dates):
    return RelationMention(
        chunk,
        "d",
        head.start,
        head.end,
        head.text,
        head.label,
        tail.start,
        tail.end,
        tail.text,
        tail.label,
        label,
        score,
        **dates,
    )


def test_a_linked_id_wins_over_the_name_and_a_blank_one_counts_as_none():
    assert entity_id("einstein", "person", "Q937", "name") == "Q937"
    assert entity_id("einstein", "person", "  ", "name") == entity_id("einstein", "person", None, "name")


def test_ids_do_not_depend_on_the_machine_or_the_run():
    assert entity_id("albert einstein", "person", None, "name") == "a794e51d-9a35-5113-aade-91202fdeee8b"
    assert relation_id("a", "born in", "b", None, None) == "33ab55d0-a7e5-5daf-8434-392173018599"


def test_one_fact_in_two_periods_is_two_relations():
    assert relation_id("a", "works at", "b", "1990", "1995") != relation_id("a", "works at", "b", "2000", None)


MERCURIES = [
    mention("Mercury", "planet", "c1"),
    mention("Mercury", "chemical element", "c2"),
    mention("mercury", "chemical element", "c3"),
    mention("Sun", "star", "c1", start=20),
]


def test_namesakes_of_different_types_are_kept_apart_on_request():
    orbits = relation(MERCURIES[0], MERCURIES[3], "ORBITS")
    resolution = resolve(MERCURIES, [orbits], "name_and_type")
    planet, element, same_element, sun = (m.entity_id for m in resolution.mentions)
    assert planet != element == same_element
    assert [(r.head_id, r.tail_id) for r in resolution.relations] == [(planet, sun)]


def test_namesakes_are_one_entity_by_default_and_none_is_lost():
    resolution = resolve(MERCURIES, [], "name")
    assert len({m.entity_id for m in resolution.mentions}) == 2
    assert len(resolution.mentions) == 4


def test_a_relation_finds_its_ends_by_name_when_no_mention_stands_at_its_place():
    ana, kestrel = mention("Ana Silva"), mention("Kestrel Labs", "organization", start=20)
    loose = RelationMention("c1", "d", 0, 0, "ana silva", "", 0, 0, "Kestrel  Labs", "", "FOUNDED", 0.5)
    resolution = resolve([ana, kestrel], [loose])
    assert [(r.head_id, r.tail_id) for r in resolution.relations] == [tuple(m.entity_id for m in resolution.mentions)]


def test_what_cannot_be_stored_is_left_out_and_counted_by_reason():
    ana, bo = mention("Ana"), mention("Bo", start=10)
    nobody = mention("Nobody", start=40)
    resolution = resolve(
        [ana, bo, mention("?!", start=30), mention("Cy", "\u200b", start=50), mention("Di", " ", start=60)],
        [
            relation(ana, bo),
            relation(ana, nobody),
            relation(ana, ana),
            *(relation(ana, bo, label) for label in ("  ", None, "\u200b", "\u3164")),
        ],
    )
    assert len(resolution.relations) == 1
    assert resolution.dropped == {
        "mention without a name": 1,
        "mention without a label": 2,
        "relation whose head or tail no mention names": 1,
        "self-loop": 1,
        "relation without a label": 4,
    }


def test_a_relation_stated_twice_in_a_chunk_counts_once_with_its_best_score():
    ana, bo = mention("Ana"), mention("Bo", start=10)
    resolution = resolve([ana, bo], [relation(ana, bo, score=0.4), relation(ana, bo, score=0.8)])
    assert [r.score for r in resolution.relations] == [0.8]


def test_different_labels_with_one_safe_form_stay_two_relations():
    ana, bo = mention("Ana"), mention("Bo", start=10)
    resolution = resolve([ana, bo], [relation(ana, bo, "works at"), relation(ana, bo, "works-at")])
    assert {r.label for r in resolution.relations} == {"works at", "works-at"}
    assert len({r.relation_id for r in resolution.relations}) == 2
