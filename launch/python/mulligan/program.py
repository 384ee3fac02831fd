"""The native program: where it is, and how it is called."""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_BUNDLED = Path(__file__).parent / "bundle" / "bin" / "mulligan"


class Error(Exception):
    """What the program refused or failed at: its own sentence, and its exit code.

    1 the run failed, 2 bad configuration, command line or plugin, 3 bad data, 4 stopped by a signal, 5 another rank failed;
    negative: the number of the signal that killed the program.
    """

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def program() -> Path:
    """The program that is called: $MULLIGAN_PROGRAM, else the one in the wheel, else the one on PATH."""
    chosen = os.environ.get("MULLIGAN_PROGRAM")
    path = chosen or (str(_BUNDLED) if _BUNDLED.exists() else shutil.which("mulligan"))
    if path is None:
        raise Error("there is no mulligan program: none came with this module and none is on PATH; "
                    "set MULLIGAN_PROGRAM to its path.", 2)
    # The module's own script has the same name, and would call itself for ever.
    try:
        with open(path, "rb") as file:
            native = file.read(4) == b"\x7fELF"
    except OSError as error:
        raise Error(f"'{path}' cannot be used as the mulligan program: {error.strerror}; check MULLIGAN_PROGRAM.",
                    2) from error
    if not native:
        raise Error(f"'{path}' is not the native mulligan program; set MULLIGAN_PROGRAM to its path.", 2)
    return Path(path)


def call(arguments: Sequence[str], echo: bool) -> str:
    """Calls the program and returns what it printed; `echo`: each line is also printed as it comes.

    An interrupt (Ctrl-C) is passed on, so that training writes a checkpoint, and then raised.
    """
    lines: list[str] = []
    interrupted = False
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        # A process group of its own: an interrupt of the terminal reaches the program once, from here.
        with subprocess.Popen([program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
                              encoding="utf-8", errors="replace", process_group=0) as process:
            assert process.stdout is not None
            while True:
                try:
                    for line in process.stdout:
                        lines.append(line)
                        if echo:
                            print(line, end="", flush=True)
                    process.wait()
                    break
                except KeyboardInterrupt:
                    process.send_signal(signal.SIGKILL if interrupted else signal.SIGINT)
                    interrupted = True
                except BaseException:
                    process.kill()
                    raise
        said.seek(0)
        remarks = said.read().splitlines()
    sentences = [remark for remark in remarks if remark.startswith("mulligan: ")]
    for remark in remarks:
        if remark not in sentences:
            print(remark, file=sys.stderr)
    if interrupted:
        raise KeyboardInterrupt
    if process.returncode != 0:
        raise Error(_sentence(sentences, arguments, process.returncode), process.returncode)
    return "".join(lines)


def _sentence(sentences: Sequence[str], arguments: Sequence[str], exit_code: int) -> str:
    if sentences:
        return sentences[-1].removeprefix("mulligan: ")
    how = f"was killed by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"ended with exit code {exit_code}"
    return f"'mulligan {' '.join(arguments)}' {how} and without a message."


def version() -> str:
    """Version, commit, kind of build and plugin interface of the program: "1.0.0 (commit 1bf7f1c..., ...)"."""
    return call(["--version"], echo=False).removeprefix("mulligan ").strip()
