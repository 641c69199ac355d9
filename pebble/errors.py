"""The one error tree: every message names the field, the value, the limit and a remedy."""

from __future__ import annotations


class PebbleError(Exception):
    """Base of every error that this project raises on purpose."""


class InputError(PebbleError, ValueError):
    """An argument is outside what its field allows.

    Args:
        field: the argument's name as the user wrote it, for example ``strides``.
        value: what was given.
        limit: the rule that it breaks, with the numbers that decide.
        remedy: what to do instead; may be empty where the limit already says it.
    """

    def __init__(self, field: str, value: object, limit: str, remedy: str = "") -> None:
        self.field = field
        self.value = value
        self.limit = limit
        self.remedy = remedy
        text = f"{field} {value!r}: {limit}"
        super().__init__(f"{text}; {remedy}" if remedy else text)


class InfeasibleError(PebbleError):
    """No tiling fits the fast memory.

    ``needed_words`` is the smallest capacity, in words, for which one does.
    """

    def __init__(self, message: str, needed_words: int) -> None:
        self.needed_words = needed_words
        super().__init__(message)


class NotAffineError(PebbleError):
    """A subscript of a loop nest is not an integer-affine function of its loops."""


class UndecidedError(PebbleError):
    """A symbolic or combinatorial question stayed open within its stated limit."""


class SolverError(PebbleError):
    """A solver's answer failed its re-check with exact arithmetic."""


class LaunchError(PebbleError):
    """A kernel cannot be launched as asked; raised before any launch."""


class TooLargeError(PebbleError):
    """A check by enumeration would take more steps than its limit."""


class MissingError(PebbleError):
    """Something is missing on this machine: a device, or an optional package.

    ``install`` is the command, or the part, that provides it.
    """

    def __init__(self, message: str, install: str) -> None:
        self.install = install
        super().__init__(f"{message}; {install}")
