"""Rules of the label-free sample that the grounding gate is fitted on."""

from __future__ import annotations

import numpy as np
import pytest
from _corpus import Passage
from _grounding import (
    EVERYDAY_QUESTIONS,
    MAX_PSEUDO_QUESTIONS,
    QUESTION_WORDS,
    grounding_sample,
    opening,
    pseudo_questions,
    top_mean,
)
from _retrieval import Embedder, FloatArray

SENTENCES = " ".join(f"Sentence number {i} is about this passage." for i in range(4))
PASSAGES = [Passage("a.md", f"H{i}", f"{i} {SENTENCES}") for i in range(5)]


def embedder(own: float, everyday: float, **covered: float) -> Embedder:
    """Embeds everyday questions and all else at fixed cosines to (1, 0), `covered` by the first word."""

    def embed(texts: list[str]) -> FloatArray:
        default = everyday if texts[0] in EVERYDAY_QUESTIONS else own
        cosines = np.array([covered.get(text.split()[0], default) for text in texts])
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)

    return embed


def test_there_are_forty_different_everyday_questions() -> None:
    """The built-in list holds forty questions, each once."""
    assert len(EVERYDAY_QUESTIONS) == len(set(EVERYDAY_QUESTIONS)) == 40
    assert all(question.endswith("?") for question in EVERYDAY_QUESTIONS)


def test_an_opening_is_as_long_as_a_question() -> None:
    """A sentence gives its first words, a label nothing."""
    assert (
        opening("one two three four five six seven eight nine ten")
        == "one two three four five six seven eight"
    )
    assert opening("one two three") == ""


def test_pseudo_questions_are_titles_and_openings_each_once() -> None:
    """A text that occurs twice belongs to the passage it occurs in first."""
    passages = [
        Passage("a.md", "A > B", "This is one sentence. Label."),
        Passage("a.md", "A > B", "And here is more."),
    ]
    assert pseudo_questions(passages) == (["B", "This is one sentence.", "And here is more."], [0, 0, 1])


def test_many_pseudo_questions_are_thinned_evenly() -> None:
    """At most MAX_PSEUDO_QUESTIONS are kept, from the first passage to the last."""
    passages = [Passage("a.md", "", f"Passage {i} is about something.") for i in range(1000)]
    questions, owners = pseudo_questions(passages)
    assert len(questions) == len(owners) <= MAX_PSEUDO_QUESTIONS
    assert len(set(np.diff(owners))) == 1
    assert max(len(question.split()) for question in questions) <= QUESTION_WORDS
    assert owners[-1] > 990


def test_top_mean_is_the_mean_of_the_highest() -> None:
    """It averages the three highest, or all when there are fewer."""
    assert top_mean(np.array([[0.1, 0.5, 0.4, 0.3]])) == pytest.approx(0.4)
    assert top_mean(np.array([[0.1, 0.5]])) == pytest.approx(0.3)
    assert top_mean(np.array([[0.1, 0.5, 0.4]]), top=1) == pytest.approx(0.5)


def test_the_own_passage_is_left_out() -> None:
    """A passage that only its own pseudo-questions are near to does not raise the sample."""
    passages = [*PASSAGES, Passage("a.md", "Odd", "Odd text that only its own question is near to.")]
    vectors = np.array([[1.0, 0.0]] * 5 + [[0.0, 1.0]])
    sample = grounding_sample(passages, vectors, embedder(0.9, 0.1, Odd=0.0))
    assert sorted(sample.on_topic)[:3] == pytest.approx([0.0, 0.0, 0.9])


def test_an_everyday_question_that_the_folder_covers_is_left_out() -> None:
    """A question nearer than three quarters of the folder's own does not count as off topic."""
    why = sum(question.startswith("Why ") for question in EVERYDAY_QUESTIONS)
    sample = grounding_sample(PASSAGES, np.tile([1.0, 0.0], (5, 1)), embedder(0.9, 0.1, Why=0.99))
    assert why > 0
    np.testing.assert_allclose(sample.off_topic, [0.1] * (40 - why))
    np.testing.assert_allclose(sample.on_topic, 0.9)


@pytest.mark.parametrize(("own", "everyday"), [(0.2, 0.3), (0.5, 0.5)])
def test_a_folder_about_everything_is_refused(own: float, everyday: float) -> None:
    """Without a question that is off topic there is no gate, and the error says so."""
    with pytest.raises(ValueError, match="nearer to its own sentences than to everyday questions"):
        grounding_sample(PASSAGES, np.tile([1.0, 0.0], (5, 1)), embedder(own, everyday))


@pytest.mark.parametrize("passages", [[], PASSAGES[:3], [Passage("a.md", "", "word")] * 4])
def test_too_little_text_is_refused(passages: list[Passage]) -> None:
    """Fewer than four passages or ten questions give one sentence, not a fit."""
    vectors = np.tile([1.0, 0.0], (len(passages), 1))
    with pytest.raises(ValueError, match="at least 4 passages and 10 sentences"):
        grounding_sample(passages, vectors, embedder(0.9, 0.1))
