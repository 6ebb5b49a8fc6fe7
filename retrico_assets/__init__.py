"""RetriCo on Dagster: documents become a knowledge graph, and the graph answers questions."""

from pathlib import Path

import resources

if not (Path(resources.__path__[0]) / "records.py").is_file():
    raise ImportError(
        f"The package 'resources' in {resources.__path__[0]} hides the package of the same name that RetriCo needs. "
        "Rename that package, or take its folder out of the Python path (PYTHONPATH, or the folder you start from)."
    )
