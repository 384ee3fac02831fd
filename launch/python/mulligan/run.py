"""The results of a run, as dictionaries and arrays."""
from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mulligan.program import Error

if TYPE_CHECKING:
    import numpy

_MADE_BY = {"quantize_result.json": "quantize", "ttt_result.json": "ttt", "evaluations.jsonl": "eval"}


class Run:
    """A run directory. Every file is read when it is asked for, so a run that is still training may be followed.

    A file that is missing or damaged raises Error with exit code 3.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        if not (self.directory / "config.toml").exists():
            raise Error(f"'{self.directory}' is not a run directory: it has no config.toml; name the folder of a run.", 3)

    def __repr__(self) -> str:
        return f"mulligan.Run({str(self.directory)!r})"

    @property
    def config(self) -> dict[str, Any]:
        """Every key of the resolved configuration."""
        return tomllib.loads(self._text("config.toml"))

    @property
    def result(self) -> dict[str, Any]:
        """result.json: val_bpb, steps, tokens_per_second, ... of a finished training."""
        return self.read("result.json")

    @property
    def ledger(self) -> dict[str, Any]:
        """ledger.json: seconds of each phase and the bytes that count."""
        return self.read("ledger.json")

    @property
    def quantized(self) -> dict[str, Any]:
        """quantize_result.json: bytes of the artifact, tensor by tensor."""
        return self.read("quantize_result.json")

    @property
    def adapted(self) -> dict[str, Any]:
        """ttt_result.json: scores without and with test-time training."""
        return self.read("ttt_result.json")

    def read(self, name: str | os.PathLike[str]) -> dict[str, Any]:
        """A JSON file of the run directory."""
        text = self._text(name)
        try:
            return dict(json.loads(text))
        except (TypeError, ValueError) as error:
            raise Error(f"'{self.directory / name}' is not a JSON object: {error}; restore the file or run the command that "
                        "makes it again.", 3) from error

    def lines(self, name: str | os.PathLike[str]) -> list[dict[str, Any]]:
        """A file of one JSON object per line. An unfinished last line, which a running process leaves, is passed over."""
        found = []
        *whole, _ = self._text(name).split("\n")
        for number, line in enumerate(whole, 1):
            try:
                found.append(dict(json.loads(line)))
            except (TypeError, ValueError) as error:
                raise Error(f"'{self.directory / name}', line {number}, is not a JSON object: {error}; remove the line.",
                            3) from error
        return found

    def metrics(self, event: str | None = None) -> list[dict[str, Any]]:
        """metrics.jsonl, all of it or the lines of one event: "step", "validation", "restart", ..."""
        return [row for row in self.lines("metrics.jsonl") if event in (None, row.get("event"))]

    def arrays(self, event: str = "step") -> dict[str, numpy.ndarray]:
        """The numbers of one event of metrics.jsonl: an array of float64 per field, a value per line, NaN where there is none.

        A field of a table is named TABLE/FIELD, as in "lr/matrices". Needs NumPy.
        """
        try:
            import numpy
        except ImportError as error:
            raise ImportError("Run.arrays needs NumPy; install it, for example with: pip install numpy") from error
        rows = [dict(_numbers(row)) for row in self.metrics(event)]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: numpy.array([row.get(name, numpy.nan) for row in rows], dtype=numpy.float64) for name in names}

    def _text(self, name: str | os.PathLike[str]) -> str:
        path = self.directory / name
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            maker = _MADE_BY.get(path.name, "train")
            raise Error(f"'{path}' cannot be read: {error.strerror}; 'mulligan {maker}' makes it.", 3) from error


def _numbers(row: dict[str, Any], table: str = "") -> list[tuple[str, float]]:
    found = []
    for name, value in row.items():
        if isinstance(value, dict):
            found += _numbers(value, f"{table}{name}/")
        elif value is None or isinstance(value, (int, float)) and not isinstance(value, bool):
            found.append((table + name, float("nan") if value is None else float(value)))
    return found
