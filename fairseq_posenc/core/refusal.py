"""Define the errors that refuse what a user gave. Other errors are faults of a program, and keep their traceback."""


class RefusedError(Exception):
    """Raised if something that the user gave is refused; the message says what to change.

    fairseq's commands show the message in one line (compat/commands.py).
    """


class InputError(RefusedError, ValueError):
    """Raised if a flag, an option or the content of a file is refused."""


def described(error: Exception) -> str:
    """Return the message of an error; that of the operating system names the file first and has no number."""
    if isinstance(error, OSError) and type(error).__str__ is OSError.__str__ and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}."
    return str(error)
