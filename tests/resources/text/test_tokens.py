import json
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.text.tokens import count_tokens
from tests.support.local_llm import local_llm, needs_local_llm


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), (" ", 0), ("Ulm", 1), ("Albert Einstein", 4), ("1879", 4), ("東京", 2), ("a, b", 3), ("\n\n\n", 1), ("Москва", 3)],
)
def test_the_estimate_counts_pieces(text, tokens):
    assert count_tokens(text) == tokens


@given(st.text())
def test_every_word_counts(text):
    assert count_tokens(text) >= sum(any(map(str.isalnum, word)) for word in text.split())


@given(st.text(), st.text())
def test_texts_apart_need_as_much_as_together(one, other):
    assert count_tokens(f"{one}\n{other}") <= count_tokens(one) + 1 + count_tokens(other)


@needs_local_llm
def test_english_is_estimated_within_a_tenth_of_a_real_tokenizer():
    text = "\n\n".join(path.read_text() for path in sorted(Path("configs/demo/corpus").glob("*.txt")))
    with local_llm(2048) as url:
        request = urllib.request.Request(
            f"{url.rsplit('/v1', 1)[0]}/tokenize", json.dumps({"content": text}).encode(), {"Content-Type": "application/json"}
        )
        tokens = len(json.load(urllib.request.urlopen(request))["tokens"])
    assert abs(count_tokens(text) - tokens) < 0.1 * tokens
