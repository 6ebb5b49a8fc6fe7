"""The answer shown while it comes: what a person sees of a reply that arrives in pieces."""

import json

import pytest

from resources.records import Chunk
from retrico_assets.query.answering.citations import AnswerStream, Citations
from retrico_assets.query.answering.evidence import Evidence, SourceChunk
from retrico_assets.query.answering.reason import reason
from tests.support.llm_stub import chat_model, says, scripted_llm, streams

CHUNKS = tuple(SourceChunk(Chunk(f"id-{n}", "d", n, f"text {n}", 0, 6), "s", "", 1.0) for n in (1, 2, 3))
CITATIONS = Citations([CHUNKS[2], CHUNKS[0]], CHUNKS)
WRITTEN = 'In "Ulm" [c1],\n\ton the [Danube] 🎈 [c2, c9]\u2028— 東京 \\ C:\\new [c7].'
SHOWN = 'In "Ulm" [3],\n\ton the [Danube] 🎈 [1]\u2028— 東京 \\ C:\\new.'


def streamed(*pieces, finish=None):
    """What was shown after each piece that showed anything, and in the end."""
    shown = []
    stream = AnswerStream(shown.append, CITATIONS)
    for piece in pieces:
        stream.feed(piece)
    if finish is not None:
        stream.finish(finish)
    return shown


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("before", ["", "```json\n", '\ufeff [{"chunk_ids": ["c1"], "found": true, "x": 1,', "\n "])
def test_a_reply_may_be_cut_anywhere(before, ascii_only):
    reply = json.dumps({"answer": WRITTEN, "chunk_ids": ["c1"]}, ensure_ascii=ascii_only)
    reply = before + (reply[1:] if before.endswith(",") else reply)
    for place in range(len(reply)):
        assert "".join(streamed(reply[:place], reply[place:], finish=WRITTEN)) == SHOWN
    assert "".join(streamed(*reply, finish=WRITTEN)) == SHOWN
    assert "".join(streamed(*(reply[i : i + 3] for i in range(0, len(reply), 3)), finish=WRITTEN)) == SHOWN


def test_the_answer_is_shown_as_soon_as_it_is_sure():
    assert streamed('{"ans', 'wer": "', "  Ulm is", " old [c", "1] and", " fair. ", '", "chunk', '_ids": []}') == [
        "Ulm is",
        " old",
        " [3] and",
        " fair.",
    ]


def test_nothing_but_the_answer_is_shown():
    assert streamed("Let me think. ", '{"answer": "Ulm"}') == []
    assert streamed('{"chunk_ids": ["c1"], "found": true}') == []
    assert streamed('{"answer": "Ulm", "found": true, "inferred_relations": [{"answer": "x"}]}') == ["Ulm"]
    assert streamed('{"note": "say \\", \\"answer\\": \\"Rome\\"", "answer": "Ulm"}') == ["Ulm"]


def test_what_the_pieces_did_not_show_is_shown_in_the_end():
    assert streamed('{"answer": "Ulm."}', finish="Ulm. [c2]") == ["Ulm.", " [1]"]
    assert streamed("Ulm, I think [c1].", finish="Ulm, I think [c1].") == ["Ulm, I think [3]."]
    assert streamed('{"answer": "He said "hi" there."}', finish='He said "hi" there.') == ["He said", ' "hi" there.']


def test_an_answer_that_had_to_be_mended_follows_whole():
    assert streamed('{"answer": "Rome."}', finish="Ulm.") == ["Rome.", "\nUlm."]


def test_a_terminal_is_not_steered_by_an_answer():
    assert "".join(streamed(r'{"answer": "Red \u001b[2J ', r"\ud83d", r'x\u0007 \q"}')) == "Red [2J \ufffdx q"


def test_half_a_character_waits_for_the_other_half():
    assert streamed(r'{"answer": "\ud83d', r"\ude00", r'!"}') == ["😀", "!"]


def asked(*replies):
    shown = []
    with scripted_llm(*replies) as stub:
        told = reason("Where?", Evidence(chunks=CHUNKS), chat_model(stub.base_url, "m", backoff=0.01), on_text=shown.append)
    return told, shown, stub


def test_the_answer_of_a_model_that_streams_is_shown_while_it_comes():
    told, shown, stub = asked(streams('{"answer": "Text', " two [c", '2]."', ', "chunk_ids": ["c2"], "found": true}'))
    assert (told.text, told.state) == ("Text two [id-2].", "answered")
    assert shown == ["Text", " two", " [2]."]
    assert stub.requests[0]["stream"] is True
    assert (told.usage.requests, told.usage.prompt_tokens) == (1, 7)


def test_reasoning_is_not_shown():
    told, shown, _ = asked(streams('<think>{"answer": "Ro', 'me"}</think>', '{"answer": "Ulm [c1]."}'))
    assert (told.text, "".join(shown)) == ("Ulm [id-1].", "Ulm [1].")


def test_a_cut_answer_is_shown_as_far_as_it_came():
    told, shown, _ = asked(streams('{"answer": "Text one', " says [c", finish_reason="length"))
    assert (told.text, told.state, "".join(shown)) == ("Text one says", "cut", "Text one says")


def test_prose_is_shown_when_it_is_known_that_nothing_better_comes():
    told, shown, _ = asked(streams("Text one", " [c1]."))
    assert (told.text, shown) == ("Text one [id-1].", ["Text one [1]."])
    told, shown, _ = asked(streams("Text."), streams('{"answer": "Text [c1]."}'))
    assert (told.text, "".join(shown)) == ("Text [id-1].", "Text [1].")


def test_a_server_that_does_not_stream_shows_the_answer_at_once():
    told, shown, _ = asked(says('{"answer": "Ulm [c1].", "chunk_ids": ["c1", "c3"]}'))
    assert told.text == "Ulm [id-1]. [id-3]"
    assert shown == ["Ulm [1].", " [3]"]


def test_nothing_is_shown_of_an_answer_that_never_came():
    for reply in ('{"chunk_ids": ["c1"]}', "I'm sorry, I can't help."):
        told, shown, _ = asked(streams(reply))
        assert (told.text, shown) == (None, [])


def test_the_numbers_shown_are_those_of_the_list_of_sources():
    """Of three sources the second is too long to be told; the third is still number 3."""
    chunks = (CHUNKS[0], SourceChunk(Chunk("long", "d", 9, "long " * 3000, 0, 15000), "s", "", 1.0), CHUNKS[2])
    shown = []
    with scripted_llm(streams('{"answer": "Three [c2]."}')) as stub:
        told = reason("Where?", Evidence(chunks=chunks), chat_model(stub.base_url, "m"), on_text=shown.append)
    assert (told.text, "".join(shown)) == ("Three [id-3].", "Three [3].")
