"""Fit the grounding gate to one folder and one embedder, without labels.

On topic are questions that the folder itself suggests: the heading of a passage and the first words
of its sentences (a whole sentence is longer than a question and closer to the text), asked against all
*other* passages. Off topic are everyday questions, half practical and half general knowledge, on forty
subjects. Both are measured as the gate measures a real question: by the mean of the highest cosines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from _corpus import WORD, Passage, sentences
from _retrieval import Embedder, FloatArray

TOP = 3
MAX_PSEUDO_QUESTIONS = 300
QUESTION_WORDS = 8
LEAST_WORDS = 4
MIN_QUESTIONS = 10
COVERED_QUANTILE = 0.75

EVERYDAY_QUESTIONS = (
    "In which year did the French Revolution begin?",
    "Who won the football match last night?",
    "How do I change a flat tyre on a bicycle?",
    "When is the best season to visit Japan?",
    "How often should I water a cactus?",
    "What time does the train to the airport leave?",
    "What powers does the president have under the constitution?",
    "How does a vaccine protect the body?",
    "How many people live in Canada?",
    "How do I teach my dog to sit?",
    "Why do cats purr?",
    "Which composer wrote the opera The Magic Flute?",
    "What are the main beliefs of Buddhism?",
    "How do I tune a guitar by ear?",
    "When were the first Olympic Games held?",
    "What will the weather be like tomorrow?",
    "What caused the First World War?",
    "How do I sort a column in a spreadsheet?",
    "Which river is the longest in Africa?",
    "What are the symptoms of the flu?",
    "How do I back up the photos on my phone?",
    "When should tomatoes be planted outside?",
    "Who wrote War and Peace?",
    "How do I open a savings account for my child?",
    "Which laptop is good for editing videos?",
    "Who discovered penicillin, and how?",
    "Which birds can be seen in the garden in winter?",
    "How do volcanoes form?",
    "What is a fair price for a used car?",
    "How do I stop my baby from crying at night?",
    "What were the results of the last election?",
    "What is the difference between weather and climate?",
    "How does a central bank set interest rates?",
    "Which countries border Germany?",
    "What is the chemical formula of table salt?",
    "How did the invention of the steam engine change industry?",
    "How do I renew my passport?",
    "When does the supermarket close on Sunday?",
    "Why is the sea salty?",
    "How far is the moon from the earth?",
)


@dataclass(frozen=True)
class GroundingSample:
    """Mean top cosines of on-topic and of off-topic questions against one folder."""

    on_topic: FloatArray
    off_topic: FloatArray


def grounding_sample(
    passages: Sequence[Passage], vectors: FloatArray, embed: Embedder, top: int = TOP
) -> GroundingSample:
    """What the gate is fitted on; `vectors` (n, d) are the unit embeddings of the passages.

    Raises
    ------
    ValueError
        If the text is too short, or no nearer to its own sentences than to everyday questions.
    """
    questions, owners = pseudo_questions(passages)
    if len(passages) <= TOP or len(questions) < MIN_QUESTIONS:
        raise ValueError(
            f"the text must give at least {TOP + 1} passages and {MIN_QUESTIONS} sentences to fit the "
            f"grounding gate on; got {len(passages)} and {len(questions)}. Add more text."
        )
    on_topic = embed(questions) @ vectors.T
    on_topic[np.arange(len(owners)), owners] = -np.inf
    own = top_mean(on_topic, top)
    everyday = top_mean(embed(list(EVERYDAY_QUESTIONS)) @ vectors.T, top)
    return GroundingSample(own, _unrelated(everyday, own))


def _unrelated(everyday: FloatArray, own: FloatArray) -> FloatArray:
    """The everyday questions without those the folder covers: nearer than most of its own are."""
    off_topic = everyday[everyday < np.quantile(own, COVERED_QUANTILE)]
    if len(off_topic) < MIN_QUESTIONS or off_topic.mean() >= own.mean():
        raise ValueError(
            f"the text must be nearer to its own sentences than to everyday questions; got mean cosines "
            f"{own.mean():.3f} and {everyday.mean():.3f}. Give a folder about fewer subjects."
        )
    return off_topic


def pseudo_questions(passages: Sequence[Passage]) -> tuple[list[str], list[int]]:
    """Texts that ask about a passage, and the row of that passage; evenly spaced if there are many."""
    owners: dict[str, int] = {}
    for row, passage in enumerate(passages):
        for text in (passage.title, *map(opening, sentences(passage.text))):
            owners.setdefault(text, row)
    owners.pop("", None)
    step = max(1, -(-len(owners) // MAX_PSEUDO_QUESTIONS))
    return list(owners)[::step], list(owners.values())[::step]


def opening(sentence: str) -> str:
    """The first QUESTION_WORDS words; empty when the sentence is shorter than LEAST_WORDS, a label."""
    words = WORD.findall(sentence)
    return " ".join(words[:QUESTION_WORDS]) if len(words) >= LEAST_WORDS else ""


def top_mean(cosines: FloatArray, top: int = TOP) -> FloatArray:
    """Mean of the `top` highest values of each row, (Q, n) -> (Q,)."""
    highest = np.sort(cosines, axis=1)[:, -top:]
    return np.asarray(highest.mean(axis=1))
