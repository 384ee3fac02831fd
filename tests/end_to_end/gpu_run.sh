#!/usr/bin/env bash
# tests/gpu/run, rehearsed on the emulated device: rows that pass, rows that find a planted fault, what is skipped, what is
# refused. The whole rehearsal and the run on a GPU are done by hand (docs/gpu_runs.md).
# shellcheck source=tests/end_to_end/cli_checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
gpu_run() { python3 "$root/tests/gpu/run" --device emulated --quick --out out "$@" >table 2>err; }
outcome() { sed -n "s/^| $1 | \([a-z ]*\) |.*/\1/p" out/table.md; } # outcome ROW

if gpu_run --build "$build" --only machine,golden,train-fp32,artifact,repeat,graphs,nccl,nccl-ranks,memcheck,step-plain,memory; then
  pass "the rehearsal ends with exit code 0"; else flunk "the rehearsal ends with exit code 0" "$(cat table err)"; fi
for row in machine golden train-fp32 artifact repeat graphs nccl nccl-ranks step-plain memory; do
  check_equal "row $row" "ok" "$(outcome $row)"
done
check_equal "without a GPU compute-sanitizer's row is skipped" "skipped" "$(outcome memcheck)"
check_contains "and says why" "needs a GPU" "$(grep memcheck out/table.md)"
check_contains "the table says that it is emulated" "emulated, not a GPU" "$(head -n 1 out/table.md)"
check_contains "kernels are listed" "| micro step | matmul |" "$(cat out/table.md)"
check "measured beside predicted: the same calls of every kernel, sums of both" python3 - <<'PYTHON'
lines = open("out/table.md").read().split("Measured beside predicted for h100")[1].splitlines()
rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")][1:]
end = next(i for i, row in enumerate(rows) if row[0] == "perfect fusion")
kernels = rows[:end - 1]
assert rows[end - 1][0] == "whole step" and float(rows[end - 1][-1]) > 0, rows[end - 1]
both = [row for row in kernels if row[0] != "between programs"]
assert len(both) > 30 and all(float(row[4]) > 0 and float(row[5]) > 0 for row in both), both
assert {"matmul", "attention_bwd", "muon_update"} < {row[1] for row in both}
assert [row[1] for row in kernels if row[0] == "between programs"], "memsets and uploads are predicted only"
predicted = sum(float(row[5]) for row in kernels)
assert abs(predicted - float(rows[end - 1][5])) < 0.001 * len(kernels), predicted
PYTHON
check "result.json has the same outcomes, and the figures" python3 - <<'PYTHON'
import json
result = json.load(open("out/result.json"))
rows = {row["name"]: row for row in result["rows"]}
table = [line.split(" | ") for line in open("out/table.md") if line.startswith("| ")]
seen = {cells[0][2:]: cells[1] for cells in table if cells[0][2:] in rows}
assert len(seen) == 11 and all(rows[name]["outcome"] == outcome for name, outcome in seen.items()), seen
assert rows["repeat"]["figures"]["different"] == 0 and rows["repeat"]["figures"]["tensors"] > 20
assert rows["nccl-ranks"]["figures"]["different"] == 0 and rows["nccl-ranks"]["figures"]["tensors"] > 20
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
gpu_run --build faulty --only golden,model,train-fp32,repeat,memory
check_equal "a row that is not ok: exit code 1" 1 $?
check_equal "another seed is found: beside the cpu backend" "not ok" "$(outcome train-fp32)"
check_contains "and the first step that differs is named" "loss of the first step" "$(grep train-fp32 out/table.md)"
check_equal "and between two runs" "not ok" "$(outcome repeat)"
check_equal "a test program that dies" "not ok" "$(outcome golden)"
check_contains "with its code" "exit code 139: dying" "$(grep '^| golden' out/table.md)"
check_equal "a test program that is not there" "skipped" "$(outcome model)"
check_equal "rows after a fault are run" "ok" "$(outcome memory)"
gpu_run --build "$build" --only repeat --time 0
check_equal "rows for which no time is left" "skipped" "$(outcome repeat)"

check "of compute-sanitizer's summaries only one without a single fault passes" python3 - "$root/tests/gpu" <<'PYTHON'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from correctness import no_fault
for summary, good in {"ERROR SUMMARY: 0 errors": True, "ERROR SUMMARY: 10 errors": False, "": False,
                      "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)": True,
                      "RACECHECK SUMMARY: 3 hazards displayed (0 errors, 3 warnings)": False}.items():
    assert no_fault(summary) == good, summary
PYTHON

mkdir -p site-packages/nvidia/nccl/lib && touch site-packages/nvidia/nccl/lib/libnccl.so.2
printf '#!/bin/sh\necho "%s"\n' "$work/site-packages" >python_with_torch
chmod +x python_with_torch
check "NCCL is found where PyTorch's packages have it" python3 - "$root/tests/gpu" "$work" <<'PYTHON'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import place
place.opens = lambda name: "nccl" not in name  # the system has all but this
for name in ("CUDA_HOME", "CUDA_PATH"):
    place.os.environ.pop(name, None)
place.glob.glob = lambda pattern, real=place.glob.glob: [] if pattern.startswith("/usr") else real(pattern)
assert place.library_folders(sys.argv[2] + "/python_with_torch") == [sys.argv[2] + "/site-packages/nvidia/nccl/lib"]
PYTHON

check "two ranks on one GPU need NCCL 2.30.3" python3 - "$root/tests/gpu" <<'PYTHON'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
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
  local what=$1 text=$2 code
  shift 2
  gpu_run "$@"
  code=$?
  check_equal "refused: $what" 2 $code
  check_contains "refused with a sentence: $what" "$text" "$(cat err)"
}
refused "a row that does not exist" "there is no row 'kernel'" --build "$build" --only kernel
refused "no program" "there is no program" --build "$work/nowhere"
echo nothing >empty.tar.xz
refused "no archive" "cannot be unpacked" --bundle empty.tar.xz
finish
