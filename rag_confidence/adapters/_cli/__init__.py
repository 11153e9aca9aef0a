"""The parts of `rag_confidence.adapters.cli`; they need the extra `cli`."""
