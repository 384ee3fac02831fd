#!/usr/bin/env bash
# tests/gpu/run, rehearsed on the emulated device: rows that pass, rows that find a planted fault, what is skipped, what is
# refused. A person starts the whole rehearsal and the run on a GPU (docs/gpu_runs.md).
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
gpu_run() { python3 "$root/tests/gpu/run" --device emulated --quick --out out "$@" >table 2>err; }
gpu_python() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/gpu python3 - "$@"; } # a script on standard input that imports from tests/gpu
outcome() { sed -n "s/^| $1 | \([a-z ]*\) |.*/\1/p" out/table.md; } # outcome ROW

if gpu_run --build "$build" --only first-contact,ttt-first,machine,golden,train-fp32,artifact,repeat,graphs,nccl,nccl-ranks,memcheck,step-plain,memory; then
  pass "the rehearsal ends with exit code 0"; else flunk "the rehearsal ends with exit code 0" "$(cat table err)"; fi
for row in first-contact ttt-first machine golden train-fp32 artifact repeat graphs nccl nccl-ranks step-plain memory; do
  check_equal "row $row" "ok" "$(outcome $row)"
done
check_equal "without a GPU compute-sanitizer's row is skipped" "skipped" "$(outcome memcheck)"
check_contains "and says why" "needs a GPU" "$(grep memcheck out/table.md)"
check_contains "the table says that it is emulated" "emulated, not a GPU" "$(head -n 1 out/table.md)"
check_contains "kernels are listed" "| micro step | matmul |" "$(cat out/table.md)"
check "measured against predicted: the same calls of every kernel, sums of both" python3 - <<'PYTHON'
lines = open("out/table.md").read().split("Measured against predicted for h100")[1].splitlines()
rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")][1:]
end = next(i for i, row in enumerate(rows) if row[0] == "whole step")
kernels = rows[:end]
assert float(rows[end][-1]) > 0, rows[end]
both = [row for row in kernels if row[0] != "between programs"]
assert len(both) > 30 and all(float(row[4]) > 0 and float(row[5]) > 0 for row in both), both
assert {"matmul", "attention_bwd", "muon_update"} < {row[1] for row in both}
assert [row[1] for row in kernels if row[0] == "between programs"], "memsets and uploads are predicted only"
predicted = sum(float(row[5]) for row in kernels)
assert abs(predicted - float(rows[end][5])) < 0.001 * len(kernels), predicted
PYTHON
check "result.json has the same outcomes, and the figures" python3 - <<'PYTHON'
import json
result = json.load(open("out/result.json"))
rows = {row["name"]: row for row in result["rows"]}
table = [line.split(" | ") for line in open("out/table.md") if line.startswith("| ")]
seen = {cells[0][2:]: cells[1] for cells in table if cells[0][2:] in rows}
assert len(seen) == 13 and all(rows[name]["outcome"] == outcome for name, outcome in seen.items()), seen
assert rows["repeat"]["figures"]["different"] == 0 and rows["repeat"]["figures"]["tensors"] > 20
assert rows["nccl-ranks"]["figures"]["different"] == 0 and rows["nccl-ranks"]["figures"]["tensors"] > 20
contact = rows["first-contact"]["figures"]
assert contact["agree"] == contact["calls"] > 50 and contact["wrong"] == 0 and contact["first_step_s"] > 0, contact
assert rows["golden"]["figures"]["passed"] > 5 and rows["step-plain"]["figures"]["tokens_per_s"] > 0
assert result["emulated"] and "--quick" in result["command"]
PYTHON

# A program whose runs on the device differ from each other, and a test program that dies.
mkdir -p faulty/bin
cat >faulty/bin/mulligan <<WRAPPER
#!/usr/bin/env bash
echo >>"$work/calls"
if [[ \$1 == train && " \$* " == *backend.plugin=cuda* ]]; then set -- "\$@" --set run.seed=\$(wc -l <"$work/calls"); fi
exec "$build/bin/mulligan" "\$@"
WRAPPER
printf '#!/bin/sh\necho dying >&2\nexit 139\n' >faulty/bin/mulligan_golden_tests
chmod +x faulty/bin/*
check_code "a row that is not ok: exit code 1" 1 gpu_run --build faulty --only golden,model,train-fp32,repeat,step-plain
check_equal "another seed is found: against the cpu backend" "not ok" "$(outcome train-fp32)"
check_contains "and the first step that differs is named" "loss of the first step" "$(grep train-fp32 out/table.md)"
check_equal "and between two runs" "not ok" "$(outcome repeat)"
check_equal "a test program that dies" "not ok" "$(outcome golden)"
check_contains "with its code" "exit code 139: dying" "$(grep '^| golden' out/table.md)"
check_equal "a test program that is not there" "skipped" "$(outcome model)"
check_equal "rows after a fault are run" "ok" "$(outcome step-plain)"

# The first stage: a device that computes attention without its scale, and a library in which one call kills the process.
check "every call of the first stage is in its file, with what it was compared with" python3 - <<'PYTHON'
import json
events = [json.loads(line) for line in open("out/first_contact.1.jsonl")]
calls = {event["number"]: event for event in events if event["event"] == "call"}
references = {call["kernel"]: call["reference"] for call in calls.values()}
assert references["matmul"].startswith("fp64, ") and references["attention_bwd"].startswith("fp64, "), references
assert references["muon_update"] == references["residual_chain_fwd"] == "cpu backend, every element", references
assert sum(call["program"] == "odd rows" for call in calls.values()) == 6
assert {"micro step", "clip", "update", "odd rows"} <= {call["program"] for call in calls.values()}
assert events[-1]["event"] == "end" and not events[-1]["stopped"]
PYTHON
mkdir -p planted/bin stuck/bin
ln -s "$build/bin/mulligan" planted/bin/mulligan
ln -s "$build/bin/mulligan" stuck/bin/mulligan
cat >planted/bin/mulligan_first_contact <<WRAPPER
#!/usr/bin/env python3
import os, sys
words, kept = iter(sys.argv[1:]), []
for word in words:
    value = next(words) if word == "--set" else None
    if value is None:
        kept.append(word)
    elif not value.startswith("backend."):
        kept += [word, value]
program = "$build/bin/mulligan_first_contact"
planted = ["backend.plugin=planted", "backend.path=$build/tests/planted_faults/mulligan_planted.so", "backend.fault=unscaled_scores"]
os.execv(program, [program, *kept, *(part for one in planted for part in ("--set", one))])
WRAPPER
cat >stuck/bin/mulligan_first_contact <<'WRAPPER'
#!/usr/bin/env python3
import json, os, signal, sys
file = open(sys.argv[sys.argv.index("--events") + 1], "w")
def write(**event):
    print(json.dumps(event), file=file, flush=True)
write(event="ready", device="a GPU that is made up", seconds=1.0)
taken_over = sys.argv[sys.argv.index("--taken-over") + 1].split(",") if "--taken-over" in sys.argv else []
for number, kernel in enumerate(("rms_norm_fwd", "attention_bwd", "matmul"), 1):
    name = dict(number=number, program="micro step", kernel=kernel, shapes="[8, 8]", dtypes="bf16", library=False)
    write(event="begin", **name)
    if number == 2 and "2" not in taken_over:
        os.kill(os.getpid(), signal.SIGSEGV)
    verdict = "taken over" if str(number) in taken_over else "agrees"
    write(event="call", **name, verdict=verdict, reference="fp64, 8 elements", argument="c", largest=1e-3, rms=1e-4,
          limit_largest=2e-2, limit_rms=1e-2, seconds=0.1, stopped=False, sentence="")
write(event="end", stopped=False, measurements=7, peak_device_memory_bytes=1, seconds=2.0)
WRAPPER
chmod +x planted/bin/mulligan_first_contact stuck/bin/mulligan_first_contact
check_code "a device whose attention is wrong: exit code 1" 1 gpu_run --build planted --only first-contact
check_contains "the first stage names the call" "attention_fwd of the micro step" "$(grep '^| first-contact' out/table.md)"
check_contains "and prints what to send back" "---- send this back" "$(cat err)"
check_contains "with the file" "out/first_contact.1.jsonl" "$(cat err)"
check "the other calls agree: each is judged by its own work" python3 - <<'PYTHON'
import json
figures = {row["name"]: row for row in json.load(open("out/result.json"))["rows"]}["first-contact"]["figures"]
assert 0 < figures["wrong"] <= 8 and figures["agree"] == figures["calls"] - figures["wrong"], figures
PYTHON
check_code "a call that kills the process: exit code 1" 1 gpu_run --build stuck --only first-contact
check_contains "the call is named" "call 2, attention_bwd of the micro step, [8, 8]: the process ended within this call" "$(cat err)"
check_contains "with the code it ended with" "exit code -11" "$(cat err)"
check "and those behind it are run by a second process, which leaves it to the reference" python3 - <<'PYTHON'
import json
figures = {row["name"]: row for row in json.load(open("out/result.json"))["rows"]}["first-contact"]["figures"]
assert figures["calls"] == 3 and figures["agree"] == 2 and figures["wrong"] == 1 and figures["measurements"] == 7, figures
PYTHON
gpu_python >table 2>err <<'PYTHON'
import runpy, sys
import first_contact
first_contact.gpu_missing = lambda: "the NVIDIA driver finds no GPU"
sys.argv = ["tests/gpu/run", "--out", "none"]
runpy.run_path(first_contact.__file__.replace("first_contact.py", "run"), run_name="__main__")
PYTHON
check_equal "without a card: exit code 2" 2 $?
check_equal "and one sentence" \
  "tests/gpu/run: there is no GPU to run on: the NVIDIA driver finds no GPU; --device emulated rehearses on the processor." "$(cat err)"

gpu_run --build "$build" --only repeat --time 0
check_equal "rows for which no time is left" "skipped" "$(outcome repeat)"

check "of compute-sanitizer's summaries only one without a single fault passes" gpu_python <<'PYTHON'
from correctness import no_fault
for summary, good in {"ERROR SUMMARY: 0 errors": True, "ERROR SUMMARY: 10 errors": False, "": False,
                      "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)": True,
                      "RACECHECK SUMMARY: 3 hazards displayed (0 errors, 3 warnings)": False}.items():
    assert no_fault(summary) == good, summary
PYTHON

mkdir -p site-packages/nvidia/nccl/lib && touch site-packages/nvidia/nccl/lib/libnccl.so.2
printf '#!/bin/sh\necho "%s"\n' "$work/site-packages" >python_with_torch
chmod +x python_with_torch
check "NCCL is found where PyTorch's packages have it" gpu_python "$work" <<'PYTHON'
import sys
import place
place.opens = lambda name: "nccl" not in name  # the system has all but this
for name in ("CUDA_HOME", "CUDA_PATH"):
    place.os.environ.pop(name, None)
place.glob.glob = lambda pattern, real=place.glob.glob: [] if pattern.startswith("/usr") else real(pattern)
assert place.library_folders(sys.argv[1] + "/python_with_torch") == [sys.argv[1] + "/site-packages/nvidia/nccl/lib"]
PYTHON

check "two ranks on one GPU need NCCL 2.30.3" gpu_python <<'PYTHON'
from harness import Skipped
from ranks import require_shared_gpus
require_shared_gpus(23003)
try:
    require_shared_gpus(22809)
    raise AssertionError("2.28.9 was let through")
except Skipped as reason:
    assert "library 2.28.9 refuses" in str(reason), reason
PYTHON

refused() { # refused WHAT TEXT ARGUMENT...
  local what=$1 text=$2
  shift 2
  check_code "refused: $what" 2 gpu_run "$@"
  check_contains "refused with a sentence: $what" "$text" "$(cat err)"
}
refused "a row that does not exist" "there is no row 'kernel'" --build "$build" --only kernel
refused "no program" "there is no program" --build "$work/nowhere"
echo nothing >empty.tar.xz
refused "no archive" "cannot be unpacked" --bundle empty.tar.xz
