"""Documents become a knowledge graph, and the graph answers questions, as Dagster assets."""
