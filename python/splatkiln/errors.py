"""errors -- what goes wrong, as exceptions."""


class BakeError(Exception):
    """A bake or file is damaged, is not one, or lacks what was asked for. Its text is a sentence for people."""


class LibraryError(RuntimeError):
    """libsplatkiln is missing, is of another version, or failed. status: the exit code of a program that fails so (5 memory,
    6 device), 0 where it never ran."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


def require(ok: object, sentence: str) -> None:
    """Raises BakeError with that sentence unless ok."""
    if not ok:
        raise BakeError(sentence)
