"""Words that carry little meaning, one list for each purpose. All are English but for the words that join names."""

_COMMON_WORDS = """
a about am an and are as at be been by can could did do does for from had has have he her him his how i if in is it
my no not of on or our she should so than that the their them then there these they this those to us was we were what
when where which who whom whose why will with would you your me
"""


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMMON = _listed(_COMMON_WORDS)

CONTRACTIONS = _listed("d didn doesn don isn ll m re s t ve wasn")
"""What a tokeniser makes of "what's", "don't" and the like."""

SEARCH_STOP_WORDS = _COMMON | _listed("but into its just")
"""Words that do not say what a question is about. "May" and "most" are not among them: they may be what is searched for."""

FUNCTION_WORDS = _COMMON | _listed("all any its many may more most much s t d m ll re ve")
"""Words that alone are no name, and that do not tell names or relation labels apart."""

JOINING_WORDS = _listed("al bin da de del della den der di do dos du el ibn la le los of the van von y")
"""Words in lower case inside a name: "Ludwig van Beethoven", "House of Commons"."""

ARTICLES = frozenset(("the", "a", "an"))
