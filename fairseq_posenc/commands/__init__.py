"""Implement the commands of `python -m fairseq_posenc`, one module each."""
