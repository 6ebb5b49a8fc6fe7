"""Keeps the frames that assets hand on, as Parquet files."""

from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
from upath import UPath

from resources.files.replacing import replace_atomically

# Named on each asset, since a MaterializeResult that carries checks as well has no annotation for its value.
FRAME = dg.PythonObjectDagsterType(pd.DataFrame, name="Frame")


class FrameFiles(dg.UPathIOManager):
    """One Parquet file per asset, or per partition of it. A reader never sees half a file, even if its writer was killed."""

    extension = ".parquet"

    def dump_to_path(self, context: dg.OutputContext, obj: pd.DataFrame, path: UPath) -> None:
        with replace_atomically(Path(str(path))) as temporary:
            obj.to_parquet(temporary, index=False)

    def load_from_path(self, context: dg.InputContext, path: UPath) -> pd.DataFrame:
        with Path(str(path)).open("rb") as file:
            return pd.read_parquet(file)

    def load_input(self, context: dg.InputContext) -> Any:
        try:
            return super().load_input(context)
        except FileNotFoundError as error:
            name = context.asset_key.to_user_string()
            raise dg.Failure(
                f"nothing built yet: there is no {name} frame at {error.filename}; materialize the asset {name} first "
                "(in the UI, or with `retrico build`)",
                allow_retries=False,
            ) from None

    def get_metadata(self, context: dg.OutputContext, obj: pd.DataFrame) -> dict[str, dg.MetadataValue]:
        paths = self._get_paths_for_partitions(context).values() if context.has_asset_partitions else [self._get_path(context)]
        return {"file_size": dg.MetadataValue.int(sum(path.stat().st_size for path in paths))}


class FrameIOManager(dg.ConfigurableIOManagerFactory[FrameFiles]):
    """Frames below a folder."""

    folder: str

    def create_io_manager(self, context: dg.InitResourceContext) -> FrameFiles:
        return FrameFiles(UPath(self.folder))
