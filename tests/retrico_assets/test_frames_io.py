"""Frames between assets are Parquet files."""

import os
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from retrico_assets.frames_io import FrameIOManager

LETTERS = dg.StaticPartitionsDefinition(["a", "b"])


@dg.asset(io_manager_key="frames")
def rows() -> pd.DataFrame:
    return pd.DataFrame({"x": [1, 2, 3]})


@dg.asset(io_manager_key="frames")
def total(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"x": [int(rows["x"].sum())]})


@dg.asset(io_manager_key="frames", partitions_def=LETTERS)
def pages(context: dg.AssetExecutionContext) -> pd.DataFrame:
    return pd.DataFrame({"letter": [context.partition_key]})


@dg.asset(io_manager_key="frames")
def letters(pages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat([pages[key] for key in sorted(pages)])


def materialize(folder: Path, selection: list[str], **options: Any) -> dg.ExecuteInProcessResult:
    resources = {"frames": FrameIOManager(folder=str(folder))}
    return dg.materialize([rows, total, pages, letters], selection=selection, resources=resources, **options)


def test_a_frame_is_a_file_that_the_next_asset_reads(tmp_path: Path) -> None:
    result = materialize(tmp_path, ["rows", "total"])
    assert pd.read_parquet(tmp_path / "total.parquet")["x"].tolist() == [6]
    metadata = result.asset_materializations_for_node("rows")[0].metadata
    assert metadata["path"].value == str(tmp_path / "rows.parquet")
    assert metadata["file_size"].value == (tmp_path / "rows.parquet").stat().st_size
    materialize(tmp_path, ["rows"])
    assert sorted(os.listdir(tmp_path)) == ["rows.parquet", "total.parquet"]


def test_a_partitioned_asset_has_a_file_per_partition(tmp_path: Path) -> None:
    for key in ("a", "b"):
        materialize(tmp_path, ["pages"], partition_key=key)
    materialize(tmp_path, ["letters"])
    assert sorted(os.listdir(tmp_path / "pages")) == ["a.parquet", "b.parquet"]
    assert pd.read_parquet(tmp_path / "letters.parquet")["letter"].tolist() == ["a", "b"]


@pytest.mark.parametrize("asset", ["total", "letters"])
def test_a_missing_frame_says_what_to_build_first(tmp_path: Path, asset: str) -> None:
    result = materialize(tmp_path, [asset], raise_on_error=False)
    failure = next(event for event in result.all_events if event.is_step_failure)
    assert "nothing built yet: there is no" in str(failure.step_failure_data)
    assert str(tmp_path) in str(failure.step_failure_data)
