"""What the folder sensor decides, tick by tick."""

import json

import pytest

from resources.errors import SettingsError
from retrico_assets.corpus.changes import PATIENCE, next_change
from retrico_assets.corpus.scanning import FileState, scan

LONG_AGO = 1_000.0


class Sensor:
    """Ticks one after another, with the cursor kept in between."""

    def __init__(self, settle_seconds=0.0):
        self.settle_seconds = settle_seconds
        self.cursor = None

    def tick(self, now, *files):
        decision = next_change(self.cursor, files, now, self.settle_seconds)
        self.cursor = decision.cursor
        return decision


def file(source, version=1, mtime=LONG_AGO):
    """``version`` is the file's size: a file of another content."""
    return FileState(source, version, int(mtime * 1e9))


def test_every_change_starts_one_build_and_going_back_starts_one_again():
    sensor = Sensor()
    first = sensor.tick(2000, file("a.txt"))
    assert first.run_key
    assert first.added == ("a.txt",)
    assert sensor.tick(2030, file("a.txt")).run_key is None

    three = sensor.tick(2060, file("a.txt"), file("A.txt"), file("sub/a.txt"))
    assert three.run_key
    assert three.added == ("A.txt", "sub/a.txt")

    second_version = sensor.tick(2090, file("a.txt", 2), file("A.txt"), file("sub/a.txt"))
    assert second_version.run_key
    assert second_version.changed == ("a.txt",)

    put_back = sensor.tick(2120, file("a.txt"), file("A.txt"), file("sub/a.txt"))
    assert put_back.run_key
    assert put_back.changed == ("a.txt",)

    emptied = sensor.tick(2150)
    assert emptied.run_key
    assert emptied.removed == ("A.txt", "a.txt", "sub/a.txt")
    assert sensor.tick(2180).run_key is None

    keys = [decision.run_key for decision in (first, three, second_version, put_back, emptied)]
    assert len(set(keys)) == 5


def test_nothing_new_leaves_the_cursor_as_it_is():
    sensor = Sensor(10)
    sensor.tick(2000, file("a.txt"))
    before = sensor.cursor
    assert sensor.tick(2030, file("a.txt")).cursor == before


def test_the_same_tick_told_again_gives_the_same_key():
    sensor = Sensor()
    sensor.tick(2000, file("a.txt"))
    cursor = sensor.cursor
    files = [file("a.txt", 2), file("b.txt")]
    assert next_change(cursor, files, 2030, 0) == next_change(cursor, files[::-1], 2030, 0)
    assert next_change(cursor, files, 2030, 0).run_key == next_change(cursor, files, 2031, 0).run_key


@pytest.mark.parametrize("cursor", [None, "", "not json", "[]", "{}", '{"version": 2}', '{"version": 1, "built": {"a": 3}}'])
def test_a_lost_cursor_leads_to_one_repeated_build_under_a_new_key(cursor):
    sensor = Sensor()
    used = sensor.tick(2000, file("a.txt")).run_key
    sensor.cursor = cursor
    repeated = sensor.tick(2030, file("a.txt"))
    assert repeated.run_key not in (None, used)
    assert sensor.tick(2060, file("a.txt")).run_key is None


def test_a_lost_cursor_and_an_emptied_folder_are_not_silence():
    sensor = Sensor(10)
    assert sensor.tick(2000).run_key
    assert sensor.tick(2030).run_key is None


def test_a_file_that_is_being_copied_waits_and_starts_exactly_one_build():
    sensor = Sensor(settle_seconds=30)
    sensor.tick(2000, file("old.txt"))
    old = file("old.txt")
    empty = sensor.tick(2020, old, file("big.json", 0, mtime=2019))
    half = sensor.tick(2040, old, file("big.json", 500, mtime=2039))
    finished = sensor.tick(2060, old, file("big.json", 1000, mtime=2045))
    assert [decision.run_key for decision in (empty, half, finished)] == [None, None, None]
    assert {decision.waiting for decision in (empty, half, finished)} == {("big.json",)}
    assert sensor.tick(2080, old, file("big.json", 1000, mtime=2045)).run_key is None
    settled = sensor.tick(2100, old, file("big.json", 1000, mtime=2045))
    assert settled.run_key
    assert settled.added == ("big.json",)
    assert settled.waiting == ()
    assert sensor.tick(2120, old, file("big.json", 1000, mtime=2045)).run_key is None


def test_a_copy_that_keeps_the_old_time_waits_too():
    sensor = Sensor(settle_seconds=30)
    sensor.tick(2000)
    assert sensor.tick(2020, file("big.json", 500)).run_key is None
    assert sensor.tick(2045, file("big.json", 1000)).run_key is None
    assert sensor.tick(2060, file("big.json", 1000)).run_key is None
    assert sensor.tick(2080, file("big.json", 1000)).run_key


def test_a_clock_of_the_disk_that_is_ahead_does_not_hold_a_file_back():
    sensor = Sensor(settle_seconds=30)
    assert sensor.tick(2000, file("a.txt", mtime=9_000_000)).run_key is None
    assert sensor.tick(2030, file("a.txt", mtime=9_000_000)).run_key


def test_in_the_first_tick_of_all_old_files_are_built_at_once_and_young_ones_wait():
    assert Sensor(30).tick(2000, file("a.txt", mtime=1960)).run_key
    sensor = Sensor(30)
    assert sensor.tick(2000, file("a.txt", mtime=1960), file("b.txt", 0, mtime=1999)).run_key is None
    both = sensor.tick(2030, file("a.txt", mtime=1960), file("b.txt", 0, mtime=1999))
    assert both.added == ("a.txt", "b.txt")


def test_other_changes_wait_for_a_file_that_is_being_written_so_that_no_build_reads_half_of_it():
    sensor = Sensor(30)
    sensor.tick(2000, file("a.txt"))
    assert sensor.tick(2100, file("a.txt", 2), file("big.json", 1)).run_key is None
    assert sensor.tick(2140, file("a.txt", 2), file("big.json", 2)).run_key is None
    both = sensor.tick(2180, file("a.txt", 2), file("big.json", 2))
    assert (both.changed, both.added) == (("a.txt",), ("big.json",))


def test_a_file_that_never_settles_does_not_hold_back_the_others_for_ever():
    sensor = Sensor(30)
    sensor.tick(2000, file("a.txt"))
    builds = []
    ticks = 2 * PATIENCE
    for tick in range(1, ticks):
        decision = sensor.tick(2000 + 30 * tick, file("a.txt", 2), file("log.txt", tick))
        builds += [decision] if decision.run_key else []
    assert [(decision.changed, decision.added, decision.waiting) for decision in builds] == [(("a.txt",), (), ("log.txt",))]
    sensor.tick(2000 + 30 * ticks, file("a.txt", 2), file("log.txt", ticks))
    assert sensor.tick(2030 + 30 * ticks, file("a.txt", 2), file("log.txt", ticks)).added == ("log.txt",)


def test_a_file_that_an_editor_deletes_and_writes_again_is_not_removed_in_between():
    sensor = Sensor(30)
    sensor.tick(2000, file("a.txt"))
    gone = sensor.tick(2030)
    assert (gone.run_key, gone.waiting) == (None, ("a.txt",))
    assert sensor.tick(2060, file("a.txt", 2)).run_key is None
    assert sensor.tick(2090, file("a.txt", 2)).changed == ("a.txt",)


def test_a_change_that_is_taken_back_before_it_settled_starts_nothing():
    sensor = Sensor(30)
    sensor.tick(2000, file("a.txt"))
    sensor.tick(2030, file("a.txt", 2))
    taken_back = sensor.tick(2040, file("a.txt"))
    assert (taken_back.run_key, taken_back.waiting) == (None, ())
    assert sensor.tick(2100, file("a.txt")).run_key is None


def test_temporary_names_never_start_a_build(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    sensor = Sensor()
    assert sensor.tick(9e9, *scan(tmp_path, ["**/*"]).files).run_key
    for name in (".a.txt.swp", "big.json.part", "~$doc.docx"):
        (tmp_path / name).write_text("half")
    (tmp_path / "x.txt").mkdir()
    (tmp_path / "broken.txt").symlink_to(tmp_path / "nowhere")
    again = scan(tmp_path, ["**/*"])
    assert len(again.skipped) == 5
    assert sensor.tick(9e9 + 30, *again.files).run_key is None


def test_the_cursor_stays_small():
    sensor = Sensor()
    sensor.tick(2_000_000_000, *(file(f"folder/{number:06}.txt", 12_345, 1_700_000_000.123) for number in range(1000)))
    assert len(sensor.cursor) / 1000 < len("folder/000000.txt") + 40
    json.loads(sensor.cursor)


def test_a_negative_settling_time_is_refused():
    with pytest.raises(SettingsError, match="settle_seconds"):
        next_change(None, [], 2000, -1)
