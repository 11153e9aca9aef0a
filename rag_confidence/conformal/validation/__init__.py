"""Whether coverage is what it should be, over many repeated trials."""
