"""Generate text: search with length penalties, continuation of a prompt, and scoring."""
