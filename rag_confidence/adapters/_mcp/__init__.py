"""The parts of `rag_confidence.adapters.mcp_server`; they need the extra `mcp`."""
