"""How much of a language model's context a text takes."""


def count_tokens(text: str) -> int:
    """About how many tokens a text takes: a third of its UTF-8 bytes, rounded up (English 3 to 4 bytes a token, Chinese 3).

    No tokenizer is asked, so control words of one ("<|endoftext|>") are text like any other.
    """
    return -(-len(text.encode("utf-8", "replace")) // 3)
