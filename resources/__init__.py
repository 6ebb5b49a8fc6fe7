"""What the assets talk to: records, stores and models. Nothing here knows of a Dagster asset."""
