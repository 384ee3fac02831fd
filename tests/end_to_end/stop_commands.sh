#!/usr/bin/env bash
# A signal ends every long command soon, with exit code 4, and leaves nothing half-done: the last evaluation of a run (which
# --resume then makes), eval, quantize, ttt and prepare. Standard streams that are closed, full or a pipe without reader.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-fraction 0.3
small_config "$work/data" >small.toml
record_config "$work/data" >record.toml
slow=(--set 'eval.mode="sliding"' --set eval.stride=1) # minutes

# files FOLDER: what lies in it, with its digests; without the states that stopped scorings left for --resume.
files() { (cd "$1" && find . -type f -not -name '*.state*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum); }
# stopped WHAT SIGNAL PROCESS: sends it; the process ends with exit code 4 and one sentence. How soon depends on the machine
# (milliseconds, for the log); one that does not end by itself within five minutes is killed, and has another code.
stopped() {
  local what=$1 began code watch
  (sleep 300 && kill -KILL "$3") 2>/dev/null &
  watch=$!
  kill "-$2" "$3"
  began=$(date +%s%N)
  wait "$3"
  code=$?
  echo "# $what: ended after $((($(date +%s%N) - began) / 1000000)) ms"
  pkill -P $watch 2>/dev/null
  wait $watch
  check_equal "$what: exit code 4" 4 $code
  check_contains "$what: says what stopped it" "mulligan: stopped by SIG$2" "$(cat stop.err)"
  check_equal "$what: one sentence ($(grep -v "^mulligan: " stop.err))" 1 "$(grep -c "^mulligan: " stop.err)"
}

begin stop train small.toml --set run.directory=late --set train.steps=4 "${slow[@]}"
wait_for late/weights.safetensors
sleep 0.3
stopped "the last evaluation" INT $process
check "the last evaluation: the checkpoint is sound" "$mulligan" checkpoint verify late
check "the last evaluation: --resume makes it" "$mulligan" train small.toml --set run.directory=late --set train.steps=4 --resume
check "straight" "$mulligan" train small.toml --set run.directory=straight --set train.steps=4
check_equal "the last evaluation: the score is that of a run that was not stopped" "$(json straight/result.json val_bpb)" \
  "$(json late/result.json val_bpb)"

check "a run" "$mulligan" train record.toml --set run.directory=run --set train.steps=4
before=$(files run)
begin stop eval run "${slow[@]}"
wait_until blocks_signals $process
sleep 1
stopped "eval" HUP $process
check_equal "eval: the run directory is as it was" "$before" "$(files run)"

for moment in 0.15 0.4 0.8; do
  begin stop quantize run
  wait_until blocks_signals $process
  sleep $moment
  if kill -0 $process 2>kill.err; then
    stopped "quantize after $moment s" TERM $process
    check_equal "quantize after $moment s: no temporary files" "" "$(find run "${TMPDIR:-/tmp}/mulligan."* -name '*.tmp.*' 2>find.err)"
  else
    wait $process
  fi
done

begin stop ttt run --set ttt.document_fraction=1.0 --set ttt.chunk_tokens=1
wait_until blocks_signals $process
sleep 1
stopped "ttt" INT $process
check "ttt: no temporary files" test -z "$(find run -name '*.tmp.*')"
check "ttt: the run can still be scored" "$mulligan" eval run

# Enough text for seconds on any machine: documents that repeat each other to the byte would be left out at once.
mkdir much
for number in {1..40}; do { echo "copy $number"; cat corpus/*.txt; } >much/$number.txt; done
for moment in 0.05 0.3 0.6; do
  begin stop prepare much --out prepared --vocab-size 4000
  wait_until blocks_signals $process
  sleep $moment
  stopped "prepare after $moment s" TERM $process
  check "prepare after $moment s: no temporary files" test -z "$(find prepared* -name '*.tmp.*' 2>find.err)"
done

# Stopped when all is in place and only its description is missing.
rm -rf prepared
begin stop prepare corpus --out prepared --vocab-size 512
wait_for prepared/manifest.json
end_by TERM
code=$?
check_true "prepare, late: exit code 4, or 0 where it was done" "$code == 4 || $code == 0"
check "prepare, late: it is whole" "$mulligan" prepare --check prepared

# Standard streams.
"$mulligan" train small.toml --set run.directory=closed --set train.steps=2 0<&- 1>&- 2>&-
check_equal "closed streams: exit code" 0 $?
check_equal "closed streams: no console text in the metrics" "" "$(grep -v '^{' closed/metrics.jsonl)"
"$mulligan" eval run >/dev/full 2>full.err
check_equal "eval > /dev/full: exit code 1" 1 $?
check_contains "eval > /dev/full: says so" "No space left on device" "$(cat full.err)"
{
  "$mulligan" train small.toml --set run.directory=pipe --set train.steps=4 2>pipe.err
  echo $? >pipe.code
} | true
check_equal "a pipe without reader: ends by SIGPIPE, as others do" 141 "$(cat pipe.code)"
check_equal "a pipe without reader: in silence" "" "$(cat pipe.err)"
check "a pipe without reader: the run is complete" "$mulligan" checkpoint verify pipe
check "a pipe without reader: with its result" test -s pipe/result.json
