"""The program `hermes-pgvector`: what Ctrl-C and a closed pipe need before and after the commands themselves."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run the command line; while modules are loaded and at the very end, Ctrl-C ends the program without a word."""
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from hermes_memory_pgvector import command_line

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by whoever started us: what we say goes nowhere.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, open(nowhere, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    try:
        return command_line.main()
    except KeyboardInterrupt:
        # Before the command has begun, or a second time while it ends.
        sys.stderr.write("interrupted\n")
        return command_line.INTERRUPTED
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        _flush()


def _flush() -> None:
    """Write out what is left; nobody may read it any more, and the interpreter must not complain of that at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
