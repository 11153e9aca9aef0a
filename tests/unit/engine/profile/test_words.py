"""Words, document frequencies and the share of a query's rare words, against counting by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
import reference_profile as ref
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.engine.profile.words import (
    count_documents,
    idf_mass,
    idf_mass_union,
    idf_shares,
    text_match,
    words_of,
)

texts = st.text(alphabet="aaabAB7_ -é中.İ²", max_size=12)


@dataclass(frozen=True)
class Corpus:
    """What the shares need of a profile."""

    document_frequencies: Mapping[str, int] | None
    n_texts: int

    @classmethod
    def of(cls, corpus: list[str]) -> Corpus:
        return cls(count_documents(corpus), len(corpus))


@given(texts)
def test_words_are_runs_of_letters_and_digits(text: str) -> None:
    """Words are maximal runs of letters and digits of any script, in lower case; underscores separate."""
    assert words_of(text) == ref.words(text)


def test_documents_are_counted_once_a_word() -> None:
    """A word that stands twice in a text counts once; the words come in alphabetical order."""
    found = count_documents(["To be or not to be", "be_gone", "", "Straße 12"])
    assert found == {"12": 1, "be": 2, "gone": 1, "not": 1, "or": 1, "straße": 1, "to": 1}
    assert list(found) == sorted(found)


@given(st.lists(texts, min_size=1, max_size=5), texts, st.lists(texts, max_size=4))
def test_share_matches_the_definition(corpus: list[str], query: str, served: list[str]) -> None:
    """The share is the largest part of the IDF mass of the query that one passage holds."""
    expected = ref.idf_share(corpus, query, served)
    found = idf_mass(Corpus.of(corpus), query, served)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


@given(st.lists(texts, min_size=1, max_size=5), texts, st.lists(texts, max_size=4))
def test_union_is_the_share_of_all_passages_as_one(corpus: list[str], query: str, served: list[str]) -> None:
    """The union is the share of the joined passages, in [0, 1] and never below that of the best one."""
    profile = Corpus.of(corpus)
    union, best = idf_mass_union(profile, query, served), idf_mass(profile, query, served)
    joined = idf_mass(profile, query, [" ".join(served)])
    assert (union is None) == (best is None)
    if union is not None and best is not None:
        assert union == joined
        assert 0.0 <= best <= union <= 1.0


@given(st.lists(texts, min_size=1, max_size=5), texts, st.lists(texts, max_size=4), texts)
def test_another_passage_never_lowers_the_share(
    corpus: list[str], query: str, served: list[str], more: str
) -> None:
    """One more passage keeps or raises both shares, wherever it stands."""
    profile = Corpus.of(corpus)
    for share in (idf_mass, idf_mass_union):
        before, after = share(profile, query, served), share(profile, query, [more, *served])
        assert (before is None and after is None) or (after or 0.0) >= (before or 0.0)


@given(st.lists(texts, min_size=1, max_size=5), texts, st.lists(texts, max_size=4))
def test_shares_are_those_of_single_passages(corpus: list[str], query: str, served: list[str]) -> None:
    """The shares are what each passage alone would have, in order; the best is the largest."""
    profile = Corpus.of(corpus)
    shares = idf_shares(profile, query, served)
    alone = [idf_mass(profile, query, [text]) for text in served]
    assert shares == (None if idf_mass(profile, query, []) is None else alone)
    if shares:
        assert idf_mass(profile, query, served) == max(shares)


def test_rare_words_weigh_more_than_common_ones() -> None:
    """The rare word outweighs the common one, and a word of every text weighs nothing."""
    profile = Corpus.of(["the cat sat", "the cat ran", "the cat slept", "the axolotl"])
    assert (idf_mass(profile, "the cat axolotl", ["axolotl"]) or 0) > 0.7
    assert idf_mass(profile, "the cat axolotl", ["the"]) == 0.0
    assert idf_mass(profile, "the cat", ["a cat"]) == 1.0


def test_an_unseen_word_weighs_most() -> None:
    """A word of the query that no sampled text holds counts, as the rarest of all."""
    profile = Corpus.of(["alpha beta", "alpha gamma", "alpha delta"])
    share = idf_mass(profile, "beta zeta", ["zeta"])
    assert share is not None
    assert share > 0.5


@pytest.mark.parametrize("query", ["", "?!", "the", "the THE"])
def test_a_query_without_weight_is_not_assessed(query: str) -> None:
    """Without words, or with none but those of every text, both shares are None."""
    profile = Corpus.of(["the cat", "the dog"])
    assert idf_mass(profile, query, ["the cat"]) is None
    assert idf_mass_union(profile, query, ["the cat"]) is None


def test_without_document_frequencies_nothing_is_assessed() -> None:
    """A profile that was fitted without texts gives None; without passages the share is 0."""
    assert idf_mass(Corpus(None, 0), "cat", ["cat"]) is None
    assert idf_mass_union(Corpus(None, 0), "cat", ["cat"]) is None
    assert idf_mass(Corpus.of(["a cat", "a dog"]), "cat", []) == 0.0
    assert idf_mass_union(Corpus.of(["a cat", "a dog"]), "cat", []) == 0.0


@given(st.lists(texts, min_size=1, max_size=5), texts, st.lists(texts, max_size=6))
def test_the_match_is_that_of_the_best_and_of_the_three_best(
    corpus: list[str], query: str, served: list[str]
) -> None:
    """The largest share, and the mean of the three largest or of as many as there are; nothing of nothing."""
    shares = [ref.idf_share(corpus, query, [text]) for text in served]
    found = text_match(Corpus.of(corpus), query, served)
    if not shares or None in shares:
        assert found == {}
        return
    best = sorted((share for share in shares if share is not None), reverse=True)[:3]
    assert found == pytest.approx({"text_best": best[0], "text_top3": sum(best) / len(best)}, abs=1e-12)
    assert 0.0 <= found["text_top3"] <= found["text_best"] <= 1.0


def test_without_counts_there_is_no_match() -> None:
    """A profile without texts knows no rare words."""
    assert text_match(Corpus(None, 0), "alpha", ["alpha"]) == {}
