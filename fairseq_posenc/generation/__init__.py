"""Search, continuation of a prompt, and scoring of generated text."""
