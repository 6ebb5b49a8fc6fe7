"""A small world with a rule that a KG model can learn: people live where the firm they work at is."""

import pandas as pd

from retrico_assets.kg import model_folder
from retrico_assets.kg.options import TrainingOptions
from retrico_assets.kg.train import train_model
from retrico_assets.kg.triples import TRIPLE_COLUMNS, divide

FIRMS = {f"Firm {n}": f"City {n}" for n in range(4)}
PEOPLE = {f"Person {n}": f"Firm {n % 4}" for n in range(32)}
UNSTATED = ("Person 5", "lives in", "City 1")
GOOD = {
    "model_kwargs": {"entity_initializer": "xavier_uniform_", "relation_initializer": "xavier_uniform_"},
    "regularizer": "powersum",
    "regularizer_kwargs": {"p": 3, "weight": 0.01},
    "loss": "crossentropy",
    "training_loop": "lcwa",
    "optimizer": "adagrad",
}
PLAN = TrainingOptions(
    model="ComplEx", embedding_dim=32, epochs=60, batch_size=64, learning_rate=0.1, inverse_triples=True, pipeline=GOOD, seed=1
)
PLAIN = TrainingOptions(model="DistMult", embedding_dim=16, epochs=3, batch_size=64, learning_rate=0.05, seed=1)


def plain(**changes):
    """PLAIN with other values."""
    return PLAIN.replace(changes)


def true_triples() -> list[tuple[str, str, str]]:
    """The triples of this world, without UNSTATED."""
    triples = [(firm, "located in", city) for firm, city in FIRMS.items()]
    for person, firm in PEOPLE.items():
        triples += [(person, "works at", firm), (person, "lives in", FIRMS[firm])]
    return [triple for triple in triples if triple != UNSTATED]


def frame_of(triples, ids=lambda name: name):
    """Triples of names as kg_triples gives them before they are divided."""
    rows = sorted({(ids(h), r, ids(t), h, t, 1.0, "") for h, r, t in triples})
    frame = pd.DataFrame(rows, columns=list(TRIPLE_COLUMNS))
    return frame.astype({name: "float64" if name == "score" else "str" for name in TRIPLE_COLUMNS})


def train(folder, plan=PLAIN, triples=None, ids=lambda name: name, shares=(0.8, 0.1, 0.1), **options):
    """Train on a divided frame of the world, as the asset does; the folder of the version."""
    divided = divide(frame_of(true_triples() if triples is None else triples, ids), shares, plan.seed)
    with model_folder.training_lock(folder):
        return train_model(divided.frame, plan, folder, no_evaluation=divided.no_evaluation, **options)
