"""Watches the corpus folder and starts a build when its files have changed."""

import time
from pathlib import Path

import dagster as dg

from resources.errors import RetricoError
from retrico_assets.corpus.changes import next_change
from retrico_assets.corpus.scanning import scan
from retrico_assets.project import ProjectResource


@dg.sensor(job_name="build", minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.STOPPED)
def corpus_sensor(context: dg.SensorEvaluationContext, project: ProjectResource) -> dg.SensorResult | dg.SkipReason:
    """Starts one build when files are new, changed or removed, and none is still being written.

    A folder that can't be read is reported; its documents are not removed.
    """
    corpus = project.settings.corpus
    if not corpus.path:
        return dg.SkipReason("The project has no corpus.path, so there is no folder to watch.")
    try:
        files = scan(Path(corpus.path), corpus.include, corpus.exclude)
    except RetricoError as error:
        return dg.SkipReason(str(error))
    decision = next_change(context.cursor, files.files, time.time(), corpus.settle_seconds)
    if decision.run_key is None:
        waiting = f"; waiting until {', '.join(decision.waiting[:5])} no longer changes" if decision.waiting else ""
        return dg.SensorResult(
            skip_reason=dg.SkipReason(f"{len(files.files)} files, no change to build{waiting}."), cursor=decision.cursor
        )
    tags = {
        "retrico/added": str(len(decision.added)),
        "retrico/changed": str(len(decision.changed)),
        "retrico/removed": str(len(decision.removed)),
    }
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=decision.run_key, tags=tags)], cursor=decision.cursor)
