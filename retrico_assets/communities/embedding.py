"""The text of a community that is embedded, and an embedder that embeds a repeated text once."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from resources.models.embedders.base import Embedder
from resources.records import Community


def embedding_text(community: Community) -> str:
    """Title and summary of a community."""
    return f"{community.title}. {community.summary}" if community.title else community.summary


class EmbedderOfRepeatedTexts(Embedder):
    """Embeds a text that occurs several times in ``texts`` only once, such as that of a community on two levels."""

    def __init__(self, embedder: Embedder, texts: Iterable[str]) -> None:
        self.calls = 0
        self._embedder = embedder
        self._repeated = {text for text, times in Counter(texts).items() if times > 1}
        self._known: dict[str, np.ndarray] = {}

    @property
    def name(self) -> str:
        """The name of the wrapped embedder."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """The dimension of the wrapped embedder."""
        return self._embedder.dimension

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Embed texts as the wrapped embedder does."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        before = self._embedder.calls
        vectors = dict(zip(new, self._embedder.embed(new), strict=True)) if new else {}
        self.calls += self._embedder.calls - before
        self._known |= {text: vector for text, vector in vectors.items() if text in self._repeated}
        return np.stack([vectors[text] if text in vectors else self._known[text] for text in texts])
