"""Entry of the command: errors become one line and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from pebble.errors import InfeasibleError, InputError, MissingError, PebbleError
from redblue.cli import BAD_INPUT, CHECK_FAILED, MISSING, app

# Typer's base of all errors of use; it has no public name of its own.
_USAGE: type[Exception] = next(
    c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"
)
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = typer.main.get_command(app).main(given, prog_name="redblue", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except BrokenPipeError:
        # The reader has gone; Python would complain again while closing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (typer.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except _USAGE as error:
        return _fail(error.format_message(), BAD_INPUT)  # type: ignore[attr-defined]
    except MissingError as error:
        return _fail(str(error), MISSING)
    except (InputError, InfeasibleError) as error:
        return _fail(str(error), BAD_INPUT)
    except PebbleError as error:
        return _fail(str(error), CHECK_FAILED)


def _fail(message: str, code: int) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
