"""Watching whether the traffic and the risk stay as they were."""
