"""Cuts a text into windows of tokens that an embedding model reads whole."""

from typing import Any


def token_windows(model: Any, text: str) -> list[tuple[str, int]]:
    """The text in pieces that the model reads whole, each with its number of tokens; cut between words where possible.

    ``model`` is a SentenceTransformer with a fast tokenizer.
    """
    limit = model.max_seq_length
    control_tokens = model.tokenizer.num_special_tokens_to_add()
    offsets = _token_offsets(model, text)
    if limit is None or len(offsets) + control_tokens <= limit:
        return [(text, len(offsets))]
    room = max(1, limit - control_tokens)
    windows: list[tuple[str, int]] = []
    first = 0
    while first < len(offsets):
        last = _window_end(offsets, first, room)
        begin = offsets[first][0]
        end = offsets[last][0] if last < len(offsets) else len(text)
        windows += _fitting(model, text[begin:end], room)
        first = last
    return windows


def _window_end(offsets: list[tuple[int, int]], first: int, room: int) -> int:
    """The token after the window that starts at ``first``: the last word boundary in its second half, else ``room`` tokens."""
    last = min(first + room, len(offsets))
    if last == len(offsets):
        return last
    for token in range(last, max(first + room // 2, first + 1), -1):
        if offsets[token - 1][1] < offsets[token][0]:
            return token
    return last


def _fitting(model: Any, piece: str, room: int) -> list[tuple[str, int]]:
    """The piece, or its halves: cut inside a word, it can have more tokens than it had in the text."""
    tokens = len(_token_offsets(model, piece))
    if tokens <= room or len(piece) < 2:
        return [(piece, tokens)] if piece.strip() else []
    middle = len(piece) // 2
    return _fitting(model, piece[:middle], room) + _fitting(model, piece[middle:], room)


def _token_offsets(model: Any, text: str) -> list[tuple[int, int]]:
    """(start, end) in the text of every token, without control tokens."""
    encoding = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)
    return list(encoding["offset_mapping"])
