"""Trains and scores with the mulligan program, and reads the results of its runs.

    import mulligan

    run = mulligan.train("mine.toml", train={"budget_seconds": 120})
    run.result["val_bpb"]                            # result.json as a dictionary
    run.arrays("step")["loss_nats"]                  # metrics.jsonl as NumPy arrays
    mulligan.evaluate(run, eval={"mode": "sliding"})["val_bpb"]
    mulligan.command("quantize", run.directory)      # any other command

Settings are the keys of the configuration, as dictionaries of its tables. A command that fails raises Error with the
program's own sentence and exit code.
"""
from mulligan.commands import command, evaluate, train
from mulligan.program import Error, program, version
from mulligan.run import Run

__all__ = ["Error", "Run", "command", "evaluate", "program", "train", "version"]
