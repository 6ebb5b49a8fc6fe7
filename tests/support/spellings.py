"""Pairs of spellings of one word that must find each other."""

SPELLINGS = [
    ("مُحَمَّد", "محمد"),
    ("שָׁלוֹם", "שלום"),
    ("Αθήνα", "αθηνα"),
    ("сёмга", "семга"),
    ("٢٠٢٤", "2024"),
    ("Łódź", "lodz"),
    ("smørrebrød", "smorrebrod"),
    ("e-mail", "email"),
    ("Nuku\u02bbalofa", "Nuku'alofa"),
]
