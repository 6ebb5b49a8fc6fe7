"""Files that come with the package: the template of a project, the instance configuration of Dagster, the demo and its model."""

from pathlib import Path


def configs_folder() -> Path:
    """The folder ``configs``: inside the installed package, or at the top of a checkout."""
    installed = Path(__file__).parent / "configs"
    return installed if installed.is_dir() else Path(__file__).parents[1] / "configs"
