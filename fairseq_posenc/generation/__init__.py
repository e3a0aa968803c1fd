"""Search, continuation and scoring of what models generate."""
