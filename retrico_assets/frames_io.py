"""Keeps the frames that assets hand on, as Parquet files."""

import os
from pathlib import Path

import dagster as dg
import pandas as pd

# Named on each asset, since a MaterializeResult that carries checks as well has no annotation for its value.
FRAME = dg.PythonObjectDagsterType(pd.DataFrame, name="Frame")


class FrameIOManager(dg.ConfigurableIOManager):
    """One Parquet file an asset, replaced as a whole: a reader or a killed writer never meets half a file."""

    folder: str

    def handle_output(self, context: dg.OutputContext, obj: pd.DataFrame) -> None:
        path = self._path(context.asset_key)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            obj.to_parquet(temporary, index=False)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        context.add_output_metadata({"file": dg.MetadataValue.path(str(path)), "file_size": path.stat().st_size})

    def load_input(self, context: dg.InputContext) -> pd.DataFrame:
        path = self._path(context.asset_key)
        if not path.exists():
            name = context.asset_key.to_user_string()
            raise dg.Failure(
                f"nothing built yet: there is no {name} frame at {path}; materialize the asset {name} first "
                "(in the UI, or with `retrico build`)",
                allow_retries=False,
            )
        return pd.read_parquet(path)

    def _path(self, key: dg.AssetKey) -> Path:
        return Path(self.folder).joinpath(*key.path).with_suffix(".parquet")
