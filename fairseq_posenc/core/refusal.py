"""Define the errors that refuse what a user gave. Other errors are faults of a program, and keep their traceback."""


class RefusedError(Exception):
    """Raised if something that the user gave is refused; the message says what to change.

    fairseq's commands show the message in one line (compat/refusals.py).
    """


class InputError(RefusedError, ValueError):
    """Raised if a flag, an option or the content of a file is refused."""
