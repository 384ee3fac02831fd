"""What is attacked: a prepared folder and finished runs, made once in a scratch folder by the program under test."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from running import fault, run
from verdict import ROOT, Attack, parse

# The configuration of the end-to-end scripts (cli_checks.bash), made smaller: lines in place of others.
SMALLER = {"name": '"tiny"\nthreads = 1', "layers": 2, "width": 32, "dims": 4, "first": 0, "last": 1, "parallel_start": 1, "steps": 6,
           "tokens_per_step": 256, "sequence_length": 128, "micro_batches": "1\nlog_every = 1", "packed_sequences": 4}
CHECKPOINTS = "[checkpoint]\nevery_steps = 1\nkeep = 3\n"

# The quickstart's model; a small number of short steps.
QUICKSTART = ("train.budget_seconds=0", "train.steps=6", "schedule.by=step", "train.log_every=1", "train.tokens_per_step=512",
              "checkpoint.every_steps=2")


class Broken(Exception):
    """The program under test fails without an attack."""


class Subject:
    """To be worked on in its folder, or in a copy of it, since all paths in it are relative. `data` (512 pieces) and
    `tiny.toml`; with `finished` the run `run` with artifact and test-time training; with `large` also `data2048` for the
    quickstart's model, `quickstart()`."""

    def __init__(self, build, folder, finished=True, large=False):
        self.program = pathlib.Path(build).resolve() / "bin/mulligan"
        self.folder = pathlib.Path(folder).resolve()
        if not (self.folder / "complete").exists():
            self.make(finished, large)

    def make(self, finished, large):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.shell(f"tiny_corpus '{self.folder}/corpus'")
        self.must("prepare", "corpus", "--out", "data", "--vocab-size", "512", "--validation-documents", "2", "--threads", "1")
        if large:
            self.must("prepare", "corpus", "--out", "data2048", "--vocab-size", "2048", "--validation-documents", "2")
        text = self.shell("record_config data")
        for key, value in SMALLER.items():
            text = re.sub(f"^{key} = .*", f"{key} = {value}", text, flags=re.M)
        (self.folder / "tiny.toml").write_text(re.sub(r"^document_fraction.*\n", "", text, flags=re.M) + CHECKPOINTS)
        if finished:
            self.must("train", "tiny.toml", "--set", "run.directory=run")
            self.must("quantize", "run")
            self.must("eval", "run")
            (self.folder / "run/evaluations.jsonl").rename(self.folder / "evaluations.jsonl")  # scores say nothing of others
            self.must("ttt", "run")
        (self.folder / "complete").touch()

    def shell(self, line):
        """What a line for bash prints that knows the functions of tests/end_to_end/cli_checks.bash."""
        known = f"MULLIGAN_USUAL_SIGNALS=$$; source '{ROOT}/tests/end_to_end/cli_checks.bash'; "
        return subprocess.run(["bash", "-c", known + line], check=True, capture_output=True, text=True,
                              env=os.environ | {"MULLIGAN_BUILD": str(self.program.parents[1])}).stdout

    def command(self, *words):
        return [self.program, *words]

    def must(self, *words):
        ended = run(self.command(*words), self.folder)
        if ended.code or fault(ended):
            raise Broken(f"`mulligan {' '.join(map(str, words))}` without an attack: {fault(ended) or ended.errors}")
        return ended

    def quickstart(self, run_directory, threads):
        """Arguments of `train` for the quickstart's model."""
        words = ["train", ROOT / "configs/quickstart.toml"]
        for setting in (*QUICKSTART, "data.train=data2048/*_train_*.bin", "data.validation=data2048/*_val_*.bin",
                        "data.tokenizer=data2048/tokenizer.model", f"run.directory={run_directory}", f"run.threads={threads}"):
            words += ["--set", setting]
        return words


def tensors(path):
    """Digest of a safetensors file without its metadata, which names the run directory."""
    data = pathlib.Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + data[8 + length:]).hexdigest()


def scores(text):
    """Every score that a command printed."""
    return re.findall(r"val_bpb (\S+) \(val_loss (\S+) nats over (\d+) tokens, (\d+) bytes\)", text)


def outcome(run_directory):
    """What an interrupted run must have in common with an uninterrupted one: weights, losses of the steps, score."""
    folder = pathlib.Path(run_directory)
    events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    result = json.loads((folder / "result.json").read_text())
    return {"weights": tensors(folder / "weights.safetensors"),
            "steps": [(e.get("step"), e.get("loss_nats")) for e in events if e.get("event") == "step"],
            "validations": [(e.get("step"), e.get("val_loss_nats")) for e in events if e.get("event") == "validation"],
            "train_loss": result.get("train_loss"), "score": result["val_loss_nats"]}


def difference(expected, seen):
    """In what two outcomes (dictionaries) differ, in words, or None."""
    for key in sorted({*expected, *seen}):
        if expected.get(key) != seen.get(key):
            return f"{key}: {str(seen.get(key))[:200]} in place of {str(expected.get(key))[:200]}"
    return None


def attack(text, name, count, what, make, options=(), **kinds):
    """Runs an attack as its command line says, and ends the program. `make` gives an object for a subject and the options: its
    case(), and if it has them the numbers() of its cases and a note() for the table. `kinds` are of Subject."""
    parser = parse(text, count, what)
    for word, settings in options:
        parser.add_argument(word, **settings)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attack_subject_") as folder:
        account = Attack(name, chosen)
        made = make(Subject(chosen.build, chosen.subject or folder + "/subject", **kinds), chosen)
        account.run(made.case, made.numbers(account) if hasattr(made, "numbers") else None)
    sys.exit(account.finish(made.note() if hasattr(made, "note") else ""))
