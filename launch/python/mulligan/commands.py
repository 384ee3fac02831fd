"""The program's commands as functions."""
from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mulligan.program import call
from mulligan.run import Run

StrPath = str | os.PathLike[str]


def _toml(key: str, value: Any) -> str:
    """`value` as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(key, element) for element in value) + "]"
    if hasattr(value, "item"):  # a number of NumPy's
        return _toml(key, value.item())
    raise TypeError(f"'{key}' is a {type(value).__name__}; a setting is a bool, number, text, path or a list of these.")


def _settings(settings: Mapping[str, Any], table: str = "") -> Iterator[str]:
    """The options that set each key of nested tables: --set train.steps=100."""
    for name, value in settings.items():
        key = f"{table}.{name}" if table else name
        if isinstance(value, Mapping):
            yield from _settings(value, key)
        else:
            yield from ("--set", f"{key}={_toml(key, value)}")


def command(*arguments: StrPath, echo: bool = True) -> str:
    """Any command of the program, such as command("quantize", run.directory); returns what it printed.

    `echo`: lines are printed as they come. Raises Error where the program refuses or fails.
    """
    return call([os.fspath(argument) for argument in arguments], echo)


def train(config: StrPath, *, overwrite: bool = False, resume: bool = False, echo: bool = True,
          **settings: Mapping[str, Any]) -> Run:
    """Trains and scores as the file `config` says, but for `settings`: tables of its keys, as in train={"steps": 100}.

    `overwrite` replaces a finished run in the run directory, `resume` continues from its newest checkpoint. An interrupt
    ends the training with a checkpoint. Raises Error where the program refuses or fails.
    """
    overrides = list(_settings(settings))
    resolved = tomllib.loads(call(["config", "print", os.fspath(config), *overrides], echo=False))
    options = ["--overwrite"] * overwrite + ["--resume"] * resume
    call(["train", os.fspath(config), *options, *overrides], echo)
    return Run(resolved["run"]["directory"])


def evaluate(run: Run | StrPath, *, artifact: bool = False, echo: bool = False,
             **settings: Mapping[str, Any]) -> dict[str, Any]:
    """Scores the run's weights, or its artifact, on the validation shards; returns the score: val_bpb, val_tokens, ...

    If `settings` change a score, as in eval={"mode": "sliding"}, it is kept apart from the run's own scores.
    """
    run = run if isinstance(run, Run) else Run(run)
    before = _score_files(run.directory)
    call(["eval", os.fspath(run.directory / "artifact.mulligan" if artifact else run.directory), *_settings(settings)], echo)
    [(name, _)] = _score_files(run.directory).items() - before.items()
    return run.lines(name)[-1] if name.suffix == ".jsonl" else run.read(name)["score"]


def _score_files(directory: Path) -> dict[Path, int]:
    """Where the program keeps scores: when each file was written, in nanoseconds."""
    files = [*directory.glob("evaluations.jsonl"), *directory.glob("trials/*.json")]
    return {path.relative_to(directory): path.stat().st_mtime_ns for path in files}
