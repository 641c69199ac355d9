"""Entry of the command: errors become one line and an exit code, never a traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the terminal's encoding lacks is written with escapes.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(arguments: list[str]) -> int:
    # Imported here, so that an interrupt while they load is caught as well.
    import typer

    from pebble.errors import InfeasibleError, InputError, MissingError, PebbleError
    from redblue.cli import BAD_INPUT, CHECK_FAILED, MISSING, app

    # Typer's base of all errors of use; it has no public name of its own.
    usage: type[Exception] = next(
        c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"
    )
    try:
        command = typer.main.get_command(app)
        code = command.main(arguments, prog_name="redblue", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return int(code or 0)
    except BrokenPipeError:
        _drop_output()
        return 0
    except typer.Abort:
        return _INTERRUPTED
    except usage as error:
        return _fail(error.format_message(), BAD_INPUT)  # type: ignore[attr-defined]
    except MissingError as error:
        return _fail(str(error), MISSING)
    except (InputError, InfeasibleError) as error:
        return _fail(str(error), BAD_INPUT)
    except PebbleError as error:
        return _fail(str(error), CHECK_FAILED)
    except OSError as error:
        _drop_output()
        place = error.filename or "standard output"
        return _fail(f"{place}: cannot be used: {error.strerror}", BAD_INPUT)


def _drop_output() -> None:
    """Nobody can read the output: without this Python would complain again while it closes."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    from redblue.options import one_line

    print(f"error: {one_line(message)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
