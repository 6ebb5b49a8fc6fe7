"""The errors that this project raises on purpose. Each message says what was wrong, with which value, and what to do."""


class RetricoError(Exception):
    """Root of every error that a user can do something about."""


class SettingsError(RetricoError):
    """project.yaml, an asset's config or an argument is wrong."""


class RunInterruptedError(RetricoError):
    """The user interrupted a run. What it had finished is kept."""


class DocumentError(RetricoError):
    """One document can't be read. The rest of the batch goes on."""


class ExtractionError(RetricoError):
    """A model could not be loaded, or could not read one text."""


class StoreError(RetricoError):
    """A store can't be reached, or refused what it was given."""


class DamagedFileError(StoreError):
    """A file of a store is damaged, or not what its name says."""


class IndexMismatchError(StoreError):
    """A vector index was made by another model, or for vectors of another size."""


class LLMError(RetricoError):
    """A language model's endpoint could not be reached, refused, or gave a reply that can't be used.

    ``kind`` is for callers that act on the cause: "context_length" (the prompt is too long: split it), "quota" (used up: stop
    asking), "credentials", "tools" (it takes none), "rate_limit", "server", "timeout", "unreachable", "stream" (it broke after
    text was shown), "reply" (it can't be read) and "request" (refused for another reason).
    """

    def __init__(self, message: str, kind: str = "request") -> None:
        super().__init__(message)
        self.kind = kind


class RetrievalError(RetricoError):
    """A strategy returned something that is not a ranking of records."""


class NotBuiltError(RetricoError):
    """Something is asked for that no build has made yet."""


class GraphCapabilityError(RetricoError):
    """Graph retrieval is asked for, and no graph provider serves the project. No other way to look takes its place."""
