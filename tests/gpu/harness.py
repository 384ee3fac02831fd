"""Rows of a run: each is a function with a limit in seconds that returns figures, or raises NotOk or Skipped. What one
row does never keeps the following ones from running."""
import dataclasses
import json
import os
import signal
import subprocess
import threading
import time


class NotOk(Exception):
    """The row found a fault."""


class Skipped(Exception):
    """The row could not be run here; the reason says what is missing."""


@dataclasses.dataclass
class Row:
    name: str
    part: str  # "correctness" or "throughput"
    what: str
    seconds: int  # limit
    function: object


@dataclasses.dataclass
class Outcome:
    row: Row
    outcome: str  # "ok", "not ok", "skipped"
    reason: str = ""
    seconds: float = 0.0
    figures: dict = dataclasses.field(default_factory=dict)
    detail: str = ""  # Markdown below the table


class Rows:
    """Decorates functions into rows, in the order of their definition."""

    def __init__(self):
        self.rows = []

    def row(self, name, part, what, seconds):
        def keep(function):
            self.rows.append(Row(name, part, what, seconds, function))
            return function
        return keep


class Commands:
    """Runs programs within the limit of the row in progress; everything they print goes to the log."""

    def __init__(self, log, environment):
        self.log, self.environment, self.deadline = log, environment, None

    def remaining(self):
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def run(self, command, environment=None, codes=(0,)):
        """Standard output. NotOk when the program ends with another exit code or the row's time is over."""
        command = [str(part) for part in command]
        self.log.write(f"\n$ {' '.join(command)}\n")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   env={**self.environment, **(environment or {})}, start_new_session=True)
        try:
            output, errors = process.communicate(timeout=self.remaining())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            self.log.write(output + errors)
            raise NotOk(f"not done within the row's limit: {name_of(command)}") from None
        except BaseException:  # the user's Ctrl-C reaches only this program
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        self.log.write(output + errors)
        self.log.flush()
        if process.returncode not in codes:
            raise NotOk(f"{name_of(command)} ended with exit code {process.returncode}: {last_line(errors or output)}")
        return output


def name_of(command):
    """The program and what it does: "mulligan train", "torch_peer.py"."""
    words = [os.path.basename(word) for word in command if not word.startswith("-")]
    script = next((word for word in words[1:] if word.endswith(".py")), None)
    return script or " ".join(words[:2])


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "(it printed nothing)"


class Sampled:
    """The largest value of `read()` while the block runs, and the first: `with Sampled(read) as s: ...; s.largest`."""

    def __init__(self, read, interval=0.2):
        self.read, self.interval, self.ended = read, interval, threading.Event()
        self.first = self.largest = read()

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def watch(self):
        while not self.ended.wait(self.interval):
            self.largest = max(self.largest, self.read())

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def run_row(row, context, end):
    """The outcome of one row. `end`: when the whole run has to be over (time.monotonic()), or None."""
    start = time.monotonic()
    limit = start + row.seconds * (20 if context.emulated else 1)  # emulated: only against hanging
    context.commands.deadline = limit if end is None else min(limit, end)
    if end is not None and start >= end:
        return Outcome(row, "skipped", "no time was left for it")
    context.commands.log.write(f"\n==== {row.name}: {row.what}\n")
    detail = []
    try:
        figures = row.function(context, detail)
        outcome = Outcome(row, "ok", figures=figures)
    except Skipped as reason:
        outcome = Outcome(row, "skipped", str(reason))
    except NotOk as fault:
        outcome = Outcome(row, "not ok", str(fault))
    except Exception as fault:  # of the row's own script: no reason to lose the others
        outcome = Outcome(row, "not ok", f"{type(fault).__name__}: {fault}")
    outcome.figures = outcome.figures or getattr(context, "partial", {})
    context.partial = {}
    outcome.seconds, outcome.detail = time.monotonic() - start, "\n".join(detail)
    return outcome


def text_of(value):
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, float):
        small, large = abs(value) < 0.1, abs(value) >= 1000
        return f"{value:.4g}" if small else f"{value:,.0f}" if large else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(outcomes):
    lines = ["| row | outcome | s | figures |", "|---|---|---|---|"]
    for o in outcomes:
        figures = ", ".join(f"{name.replace('_', ' ')} {text_of(value)}" for name, value in o.figures.items())
        said = "; ".join(part for part in (o.reason.replace("|", "/"), figures) if part)
        lines.append(f"| {o.row.name} | {o.outcome} | {o.seconds:.1f} | {said} |")
    return "\n".join(lines) + "\n"


def details(outcomes):
    return "".join(f"\n### {o.row.name}: {o.row.what}\n\n{o.detail}\n" for o in outcomes if o.detail)


def as_json(facts, outcomes):
    rows = [dict(name=o.row.name, part=o.row.part, what=o.row.what, outcome=o.outcome, reason=o.reason,
                 seconds=round(o.seconds, 3), figures=o.figures, detail=o.detail) for o in outcomes]
    return json.dumps({**facts, "rows": rows}, indent=2) + "\n"
