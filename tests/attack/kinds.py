"""The kinds of files that mulligan reads, where they lie in the subject, and the commands that read them."""
import dataclasses
import hashlib
import json
import pathlib
import re
import shutil

import damage
from subject import outcome, scores


@dataclasses.dataclass
class Reader:
    """A command that reads the file. `made`: what must not change; `seals`: whether that is a score, or weights."""
    name: str
    words: list
    made: object
    seals: bool = True


@dataclasses.dataclass
class Kind:
    name: str
    files: object  # of the case's folder: candidates
    ways: dict
    readers: list
    weight: float = 1
    sealed: bool = False
    prepare: object = lambda folder: None  # before the damage
    after: object = lambda folder: None  # after it
    refused: object = lambda folder: False  # whether this damage must be refused
    code: bool = False  # files that are code: they may end the process


def named(*names):
    return lambda folder: names


def found(pattern):
    return lambda folder: sorted(str(path.relative_to(folder)) for path in folder.glob(pattern))


def score(folder, ended):
    return scores(ended.output)


def trained(folder, ended):
    return outcome(folder / "attacked")


def resumed(folder, ended):
    made = outcome(folder / "run")
    return {key: made[key] for key in ("weights", "steps", "score")}


def nothing(folder, ended):
    return None


def unfinished(folder):
    """The run as it was killed after step 4: to be resumed."""
    run = folder / "run"
    for path in run.iterdir():
        if path.name not in ("checkpoints", "config.toml", "metrics.jsonl", "log.txt", "ledger.json"):
            path.unlink()
    shutil.rmtree(run / "checkpoints/step_00000006")


def reseal(folder):
    """Puts the digest of a forged checkpoint manifest right."""
    for manifest in (folder / "run/checkpoints").glob("*/manifest.json"):
        digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
        (manifest.parent / "manifest.json.sha256").write_text(f"{digest}  manifest.json\n")


def reseal_tensors(folder):
    for tensors in (folder / "run/checkpoints").glob("*/tensors.safetensors"):
        manifest = tensors.parent / "manifest.json"
        text = manifest.read_text()
        document = json.loads(text)
        old = document["tensors"] if isinstance(document.get("tensors"), dict) else {}
        digest = hashlib.sha256(tensors.read_bytes()).hexdigest()
        for value in (old.get("sha256"), document.get("tensors_sha256")):
            if value:
                text = text.replace(value, digest)
        if old.get("bytes"):
            text = re.sub(rf'("bytes": ){old["bytes"]}\b', rf"\g<1>{tensors.stat().st_size}", text)
        manifest.write_text(text)
    reseal(folder)


def broken_line(folder):
    """Whether a line of the metrics, other than an unfinished last one, is not JSON."""
    lines = (folder / "run/metrics.jsonl").read_bytes().split(b"\n")[:-1]
    try:
        return not all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return True


def only_library(folder):
    """Plugins of the case's own."""
    (folder / "libraries").mkdir()
    for name in ("warmdown", "softcap_ce"):
        shutil.copy(only_library.source / f"mulligan_{name}.so", folder / "libraries")


def all_kinds(subject):
    only_library.source = pathlib.Path(subject.program).parent.parent / "lib/mulligan/plugins"
    train = Reader("train", ["train", "tiny.toml", "--set", "run.directory=attacked", "--set", "train.steps=2"], trained)
    resume = Reader("resume", ["train", "tiny.toml", "--set", "run.directory=run", "--resume"], resumed)
    verify = Reader("checkpoint verify", ["checkpoint", "verify", "run"], nothing)
    show = Reader("checkpoint show", ["checkpoint", "show", "run"], nothing)
    evaluate, adapt = Reader("eval", ["eval", "run"], score), Reader("ttt", ["ttt", "run"], score)
    check = Reader("prepare --check", ["prepare", "--check", "data"], nothing)
    report, comparison = Reader("report", ["report", "run"], nothing), Reader("comparison", ["report", "run", "run"], nothing)
    dry = Reader("train --dry-run", ["train", "tiny.toml", "--dry-run"], nothing)
    loaded = ["config", "check", "tiny.toml", "--set", "schedule.path=libraries/mulligan_warmdown.so", "--set",
              "loss.path=libraries/mulligan_softcap_ce.so"]
    binary, headed, text, as_json = damage.BINARY, damage.HEADED, damage.TEXT, damage.JSON
    return [
        Kind("validation shard", found("data/*_val_*.bin"), binary, [evaluate, train, adapt, check], 6, sealed=True),
        Kind("training shard", found("data/*_train_*.bin"), binary, [train, check], 5, sealed=True),
        Kind("data manifest", named("data/manifest.json"), as_json, [evaluate, train, check], 8, sealed=True),
        Kind("tokenizer", named("data/tokenizer.model"), binary, [evaluate, train, adapt, check], 6, sealed=True),
        Kind("configuration", named("tiny.toml"), text, [Reader("config check", ["config", "check", "tiny.toml"], nothing),
                                                         Reader("config print", ["config", "print", "tiny.toml"], nothing), dry], 8),
        Kind("saved configuration", named("run/config.toml"), text, [evaluate, adapt, report], 6),
        Kind("checkpoint manifest", found("run/checkpoints/*/manifest.json"), as_json, [resume, verify, show], 5, sealed=True,
             prepare=unfinished),
        Kind("forged checkpoint manifest", found("run/checkpoints/*/manifest.json"), as_json, [resume, verify, show], 6,
             prepare=unfinished, after=reseal),
        Kind("checkpoint digest", found("run/checkpoints/*/manifest.json.sha256"), text, [resume, verify], 1, sealed=True,
             prepare=unfinished),
        Kind("checkpoint tensors", found("run/checkpoints/*/tensors.safetensors"), headed, [resume, verify, show], 4, sealed=True,
             prepare=unfinished),
        Kind("forged checkpoint tensors", found("run/checkpoints/*/tensors.safetensors"), headed, [resume, verify, show], 3,
             prepare=unfinished, after=reseal_tensors),
        Kind("weights", named("run/weights.safetensors"), headed,
             [evaluate, adapt, Reader("checkpoint diff", ["checkpoint", "diff", "run/weights.safetensors",
                                                          "run/weights.safetensors"], nothing)], 6, sealed=True),
        Kind("artifact", named("run/artifact.mulligan"), binary,
             [Reader("eval of it", ["eval", "run/artifact.mulligan"], score),
              Reader("ttt of it", ["ttt", "run/artifact.mulligan"], score)], 7, sealed=True),
        Kind("metrics", named("run/metrics.jsonl"), as_json, [report, comparison], 4),
        Kind("metrics of a resumed run", named("run/metrics.jsonl"), as_json, [resume], 3, prepare=unfinished,
             refused=broken_line),
        Kind("ledger", named("run/ledger.json"), as_json, [report, evaluate, adapt], 4),
        Kind("result", named("run/result.json", "run/ttt_result.json", "run/quantize_result.json"), as_json,
             [report, comparison, evaluate], 5),
        Kind("list of evaluations", named("run/evaluations.jsonl"), as_json, [report, evaluate], 2,
             prepare=lambda folder: shutil.copy(subject.folder / "evaluations.jsonl", folder / "run")),
        Kind("sweep", named("sweep.toml"), text, [Reader("sweep", ["sweep", "sweep.toml"], nothing)], 1,
             prepare=lambda folder: (folder / "sweep.toml").write_text(SWEEP)),
        Kind("name map", named("map.toml"), text,
             [Reader("import", ["checkpoint", "import", "run/weights.safetensors", "--map", "map.toml", "--config", "tiny.toml",
                                "--out", "ours.safetensors"], nothing)], 2, prepare=write_map),
        Kind("JSON lines", named("texts.jsonl"), as_json,
             [Reader("prepare", ["prepare", "texts.jsonl", "--out", "again", "--vocab-size", "512", "--validation-documents", "2"],
                     nothing)], 2,
             prepare=write_texts),
        Kind("tokenizer of prepare", named("data/tokenizer.model"), binary,
             [Reader("prepare --tokenizer", ["prepare", "corpus", "--out", "again", "--tokenizer", "data/tokenizer.model"],
                     nothing)], 3),
        Kind("plugin library", found("libraries/*.so"), binary,
             [Reader("plugins", ["plugins", "--plugin-path", "libraries"], nothing), Reader("config check", loaded, nothing),
              Reader("train with it", ["train", *loaded[2:], "--set", "run.directory=attacked", "--set", "train.steps=2"],
                     nothing)], 8, prepare=only_library, code=True),
    ]


SWEEP = """config = "tiny.toml"
directory = "sweep"
seeds = [1]
[[rows]]
name = "short"
set = ["ema.decay=0.5"]
"""


def write_map(folder):
    data = (folder / "run/weights.safetensors").read_bytes()
    names = [name for name in json.loads(data[8:8 + int.from_bytes(data[:8], "little")]) if name != "__metadata__"]
    (folder / "map.toml").write_text("".join(f'[[tensor]]\ntheirs = "{name}"\nours = "{name}"\n' for name in names))


def write_texts(folder):
    texts = [path.read_text() for path in sorted((folder / "corpus").iterdir())]
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text[:3000], "n": n}) + "\n" for n, text in enumerate(texts)))
