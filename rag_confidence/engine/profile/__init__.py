"""What cosines look like in one corpus and embedder when nothing is special, from unlabelled vectors."""

from rag_confidence.engine.profile.background import background_of
from rag_confidence.engine.profile.columns import Background
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.profile.words import idf_mass, idf_mass_union

__all__ = ["Background", "CorpusProfile", "background_of", "idf_mass", "idf_mass_union"]
