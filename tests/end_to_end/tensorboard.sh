#!/usr/bin/env bash
# TensorBoard's own reader, from PyPI, reads the event file that `mulligan report --tensorboard` writes: every number of metrics.jsonl,
# at its step. MULLIGAN_TENSORBOARD_PYTHON names a Python that has the package; without it a virtual environment is made,
# and where that is impossible the checks are skipped.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

mkdir run
cat >run/metrics.jsonl <<'JSON'
{"event":"step","step":1,"loss_nats":7.625,"window":[0,1],"window_loss_nats":7.625,"gradient_norm":0.5,"gradient_norm_of":{"matrices":0.25},"lr":{"matrices":0.02},"tokens":2048,"tokens_per_second":1000.0,"step_seconds":2.0,"slowest_step_seconds":2.0,"elapsed_seconds":2.0,"budget_fraction":0.1}
{"event":"step","step":300,"loss_nats":4.25,"window":[1,300],"window_loss_nats":5.0,"gradient_norm":null,"gradient_norm_of":{"matrices":0.125},"lr":{"matrices":0.01},"tokens":614400,"tokens_per_second":1024.0,"step_seconds":2.0,"slowest_step_seconds":2.5,"elapsed_seconds":600.0,"budget_fraction":1.0}
{"event":"validation","step":300,"val_loss_nats":4.5,"val_bpb":1.75,"val_tokens":100,"val_bytes":300,"seconds":1.0}
JSON
check "export" "$mulligan" report run --tensorboard board
file=$(find board -name 'events.out.tfevents.*')
check_true "a file of some size" "$(stat -c %s "$file") > 500"

python=${MULLIGAN_TENSORBOARD_PYTHON:-}
if [[ -z $python ]]; then
  if python3 -m venv environment >venv.log 2>&1 && timeout 300 environment/bin/pip install -q tensorboard >pip.log 2>&1; then
    python=$work/environment/bin/python
  else
    echo "skipped - TensorBoard's reader (the package cannot be installed: $(tail -n 1 pip.log venv.log 2>/dev/null | grep -v '^$' | tail -n 1))"
    finish
  fi
fi
cat >read.py <<'PY'
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    for event in events.Scalars(tag):
        print(f"{tag} {event.step} {event.value:.6g}")
start = min(e.wall_time for t in events.Tags()["scalars"] for e in events.Scalars(t))
end = max(e.wall_time for t in events.Tags()["scalars"] for e in events.Scalars(t))
print(f"between {end - start:.0f} s")
PY
seen=$("$python" read.py board 2>read.err) || flunk "TensorBoard reads it" "$(cat read.err)"
for line in "loss_nats 1 7.625" "loss_nats 300 4.25" "lr/matrices 300 0.01" "gradient_norm/matrices 300 0.125" "gradient_norm 1 0.5" \
  "tokens 300 614400" "val_loss_nats 300 4.5" "val_bpb 300 1.75" "between 598 s"; do
  check_contains "TensorBoard reads: $line" "$line"$'\n' "$seen"$'\n'
done
check_equal "a number that is not finite is left out" 1 "$(grep -c '^gradient_norm [0-9]' <<<"$seen")"
# A flipped bit is noticed by the reader's checksums, so it is they that were right.
cp -r board damaged
printf '\x7f' | dd of="$(find damaged -name 'events*')" bs=1 seek=200 conv=notrunc status=none
check_true "a damaged record is not read" "$("$python" read.py damaged 2>/dev/null | wc -l) < $(wc -l <<<"$seen")"
