"""The parts of `fetch.py`: which files there are, how they come, what is checked, how they are unpacked."""
