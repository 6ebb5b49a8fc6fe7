import pandas as pd

from resources.frames import chunks_frame, documents_frame, entities_frame, records, relations_frame
from resources.records import Chunk, Document, Mention, RelationMention

DOCUMENT = Document("d", "a/b.txt", "b", "Zoë met 京都.", "hash", {"page": 1, "tags": ["x"]})
CHUNK = Chunk("c", "d", 0, "Zoë met 京都.", 0, 11)
MENTION = Mention("c", "d", 0, 3, "Zoë", "person", 0.5)
LINKED = Mention("c", "d", 8, 10, "京都", "location", 0.25, "Q34600", {"a": 1})
RELATION = RelationMention("c", "d", 0, 3, "Zoë", "person", 8, 10, "京都", "location", "met", 0.75, "2001")


def test_records_survive_a_frame_and_a_parquet_file(tmp_path):
    for make, items in (
        (documents_frame, [DOCUMENT]),
        (chunks_frame, [CHUNK]),
        (entities_frame, [MENTION, LINKED]),
        (relations_frame, [RELATION]),
    ):
        make(items).to_parquet(tmp_path / "frame.parquet")
        assert records(pd.read_parquet(tmp_path / "frame.parquet"), type(items[0])) == items


def test_an_empty_frame_keeps_its_columns_and_types(tmp_path):
    entities_frame([]).to_parquet(tmp_path / "frame.parquet")
    frame = pd.read_parquet(tmp_path / "frame.parquet")
    assert list(frame.columns) == list(entities_frame([MENTION]).columns)
    assert dict(frame.dtypes) == dict(entities_frame([MENTION]).dtypes)
    assert records(frame, Mention) == []
