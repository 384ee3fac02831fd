"""Makes the figures of README and of docs/own_text.md in one run on this machine.

  PYTHON_WITH_TORCH tests/bench/readme_figures.py --data DATA2048 --large DATA8192 --text FOLDER [--write]

PYTHON_WITH_TORCH also has matplotlib. DATA2048 is data/quickstart of ./launch/quickstart; DATA8192 is its text with 8,192 pieces. FOLDER
is the text of docs/own_text.md, the help of Vim (/usr/share/vim/vim90/doc).

1. configs/quickstart.toml: training, quantisation, test-time training; README's table of scores.
2. The same model in compiled PyTorch for the same seconds (equal_clock.py); the picture of both.
3. Tokens per second of training (train_speed.py) and test-time training (ttt_speed.py) at d=512, in fp32 and, if the CPU multiplies
   bf16, in bf16. PyTorch needs minutes for a step in bf16 on other CPUs.
4. The commands of docs/own_text.md.

The machine must be idle (fair_peer.py). Prints the texts; --write puts them into the pages and docs/images/equal_clock.png.
"""
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import equal_clock
import fair_peer
import train_speed
import ttt_speed
from fair_peer import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURE = "docs/images/equal_clock.png"
SHOWN = re.compile(r"(\S+ is written|  mulligan prepare|train  |validation  |tokenizer  |text  |step +(1|50) |step .*(100.0 %|val_bpb)|report  |"
                   r"artifact  |artifact \+ code of|before|after|windows|seconds  |bytes  |text by|\d+ tokens, )")


CPU = pathlib.Path("/proc/cpuinfo").read_text()
DTYPES = ("fp32", "bf16") if " avx512_bf16 " in CPU else ("fp32",)
TTT_TOKENS = 20_000


def machine():
    name = re.search(r"model name\s*: (.*)", CPU)[1].replace("(R)", "").removesuffix(" Processor").strip()
    parts = [part for part, flag in (("AVX-512", "avx512f"), ("BF16", "avx512_bf16"), ("AMX", "amx_tile")) if f" {flag} " in CPU]
    commit = run(["git", "-C", ROOT, "rev-parse", "--short=8", "HEAD"]).strip()
    return f"{os.cpu_count()} cores of an {name} ({', '.join(parts) or 'AVX2'}), {datetime.date.today()}, {commit}"


def quickstart(options, program, folder):
    """Scores of the run, with its table of results and its curve."""
    result = equal_clock.mulligan(options, "fp32", 1337, folder)
    run([program, "quantize", folder, "--source", ROOT])
    printed = run([program, "ttt", f"{folder}/artifact.mulligan", "--output", folder])
    events = map(json.loads, pathlib.Path(folder, "metrics.jsonl").read_text().splitlines())
    curve = [(event["elapsed_seconds"], event["window_loss_nats"]) for event in events if event["event"] == "step"]
    table = [line for line in printed[printed.index("before quantisation"):].split("\n\n")[0].splitlines() if not line.startswith("seconds")]
    return result | dict(table="\n".join(table), curve=curve)


def picture(runs, file):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plot
    figure, (losses, scores) = plot.subplots(1, 2, figsize=(9, 3.2), gridspec_kw=dict(width_ratios=[3, 1]))
    for number, (name, result) in enumerate(runs.items()):
        losses.plot(*zip(*result["curve"]), label=name, color=f"C{number}")
        scores.bar_label(scores.bar(name, result["bpb"], color=f"C{number}"), fmt="%.3f")
    losses.set(xlabel="seconds of training, two cores", ylabel="training loss, nats per token", xlim=(0, None))
    losses.legend()
    scores.set(ylabel="validation, bits per byte", ylim=(0, 1.15 * max(result["bpb"] for result in runs.values())))
    figure.tight_layout()
    figure.savefig(file, dpi=100)


def speeds(options, program, folder):
    """(what, tokens per second of mulligan, of PyTorch) at d=512."""
    size = next(size for size in train_speed.SIZES.values() if size["data"] == "large")
    for dtype in DTYPES:
        yield (f"training, d=512, {dtype}", train_speed.mulligan(options, size, dtype)["tokens_per_second"],
               train_speed.peer(options, size, dtype, True)["tokens_per_second"])
    data, size, shard = pathlib.Path(options.large), ttt_speed.SIZES["large"], folder / "fineweb_val_000000.bin"
    run([program, "train", ROOT / size["config"], "--quiet", *fair_peer.settings(options, {
        "data.train": f"{data}/*_train_*.bin", "data.validation": "", "data.tokenizer": f"{data}/tokenizer.model", "train.steps": 1,
        "run.directory": folder / "large", "run.threads": options.threads})])
    ttt_speed.first_documents(next(data.glob("*_val_*.bin")), TTT_TOKENS, shard)
    for dtype in DTYPES:
        ours, _ = ttt_speed.mulligan(options, size, folder / "large/weights.safetensors", data / "tokenizer.model", shard, dtype, folder)
        theirs = ttt_speed.peer(options, size, folder / "large/weights.safetensors", shard, dtype, False, True)
        yield f"test-time training, d=512, {dtype}", ours["tokens"] / ours["seconds"], theirs["tokens_per_second"]


def own_text(options, program, folder):
    """The commands of docs/own_text.md with the lines of their output that SHOWN matches."""
    pathlib.Path(folder, "my_texts").symlink_to(pathlib.Path(options.text).resolve())
    page = (ROOT / "docs/own_text.md").read_text()
    for line in re.search(r"```sh\n(.*?)```", page, re.S)[1].splitlines()[1:]:
        arguments = shlex.split(line, comments=True)
        done = subprocess.run([program, *arguments[1:]], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{line}\n{done.stdout}{done.stderr}")
        yield "$ " + line.partition("  #")[0].rstrip()
        omitted = False
        for said in (done.stderr + done.stdout if arguments[1] == "generate" else done.stdout).splitlines():
            shown = SHOWN.match(said) or arguments[1] in ("generate", "report")
            if shown or not omitted:
                yield said if shown else "..."
            omitted = not shown


def replaced(page, pattern, text):
    path = ROOT / page
    old = path.read_text(encoding="utf-8")
    new, count = re.subn(pattern, lambda _: text, old, flags=re.M)
    if count != 1:
        sys.exit(f"{page} has {count} places for {pattern}")
    path.write_text(new, encoding="utf-8")


def main():
    parser = fair_peer.parser_of(__doc__)
    parser.add_argument("--data", required=True, help="folder of shards with 2048 pieces")
    parser.add_argument("--large", required=True, help="folder of shards with 8192 pieces")
    parser.add_argument("--text", required=True, help="folder of text for docs/own_text.md")
    parser.add_argument("--seconds", type=float, default=130)
    parser.add_argument("--write", action="store_true", help="put the figures into README.md, docs/own_text.md and the picture")
    parser.set_defaults(order="shuffled", seed=42)
    options = parser.parse_args()
    print(fair_peer.require_quiet(options.busy))
    program, where = ROOT / options.build / "bin/mulligan", machine()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        runs = {"mulligan": quickstart(options, program, f"{folder}/run"), "PyTorch": equal_clock.peer(options, "fp32", 1337, False, folder)}
        file = ROOT / PICTURE if options.write else folder / "equal_clock.png"
        picture(runs, file)
        print(where, runs["mulligan"]["table"], sep="\n", flush=True)
        rates = [("training, quickstart, fp32", *(run["steps"] * 2048 / options.seconds for run in runs.values())), *speeds(options, program, folder)]
        rows = "".join(f"| {what} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} |\n" for what, ours, theirs in rates)
        print(rows, flush=True)
        transcript = "\n".join(own_text(options, program, folder))
        print(transcript)
    if options.write:
        replaced("README.md", r"!\[Loss and [^\]]*\]\(docs/images/equal_clock\.png\)",
                 f"![Loss and bits per byte of the quickstart's model, trained for {options.seconds:g} s by mulligan and by PyTorch]({PICTURE})")
        replaced("README.md", r"^before quantisation[^`]*", runs["mulligan"]["table"] + "\n")
        replaced("README.md", r"(?<=\|---\|---\|---\|---\|\n)(\| (test-time )?training.*\n)+", rows)
        replaced("README.md", r"^Measured on .*$", f"Measured on {where}.")
        replaced("docs/own_text.md", r"^\$ mulligan config init[^`]*", transcript + "\n")


if __name__ == "__main__":
    main()
