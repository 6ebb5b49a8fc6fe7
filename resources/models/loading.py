"""What loading any model has in common."""


def hide_loading_bars() -> None:
    """No bar for weights read from disk: it lasts a moment, and it would break into the bars of a build."""
    from transformers.utils import logging

    logging.disable_progress_bar()
