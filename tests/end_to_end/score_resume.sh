#!/usr/bin/env bash
# eval and ttt that were killed or stopped go on with --resume: scores, files and metrics are those of a scoring that was
# never interrupted, bit for bit; the seconds of all attempts count; another scoring's state is refused.
# MULLIGAN_KILLS=20 tries as many moments (default 1, long form 10); MULLIGAN_KILL_SEED repeats a try.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

kills=${MULLIGAN_KILLS:-$(amount 1 10)}
seed=${MULLIGAN_KILL_SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$((seed % 32768))
echo "# MULLIGAN_KILL_SEED=$seed"

tiny_data --validation-fraction 0.1
{
  record_config "$work/data"
  echo '[ttt.base]
plugin = "global_sgd"
chunk_tokens = 512
batch_rows = 2
lr = 0.01'
} | sed 's/^document_fraction.*/document_fraction = 0.5\nprefix_documents = 8\nphases = 2\naudit = "order.jsonl"/' >small.toml
check "train" "$mulligan" train small.toml --set run.directory=straight
# Saved after every pass and every batch.
saved=(--set eval.save_seconds=1e-9)

# What a scoring left, without what may differ: the time that it took, and which windows were checked for causality.
left_by_ttt() {
  sed -E 's/"(setup_)?seconds": ?[0-9.e+-]+//; /"weights"|peak_device_memory|"(seed|turns|turns_of|scores|cuts|one_score_in|one_turn_in)":/d' "$1/ttt_result.json"
  cat "$1/order.jsonl" # the audit log, which the run's own configuration asks for
}
# The last line: a scoring that ended before its signal came has left one, too.
left_by_eval() { tail -n 1 "$1/evaluations.jsonl" | sed -E 's/"seconds":[0-9.e+-]+//'; }

now_ms() { echo $(($(date +%s%N) / 1000000)); }
# killed COMMAND RUN SIGNAL: runs it, with a signal at a random moment after it has begun to note them; leaves its exit code in `code`.
killed() {
  local moment=$((RANDOM % ${milliseconds[$1]} + 1)) process
  begin killed "$1" "$2" "${saved[@]}" "${@:4}"
  wait_until blocks_signals $process # before that it dies of one as any program does
  sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  end_by "$3" 2>/dev/null
  code=$?
}

declare -A milliseconds
for command in eval ttt; do
  cp -r straight before_$command
  began=$(now_ms)
  check "$command, never interrupted" "$mulligan" $command straight
  milliseconds[$command]=$(($(now_ms) - began))
  [[ $command == eval ]] || check_true "the audit log lists all batches" "$(grep -c '"event":"book"' straight/order.jsonl) > 4"
  check_equal "$command leaves no state behind" "" "$(ls straight | grep state)"
  expected=$(left_by_$command straight)
  for signal in KILL TERM; do
    for ((number = 1; number <= kills; ++number)); do
      cp -r before_$command broken
      killed $command broken $signal
      what="$command, SIG$signal no. $number"
      if [[ $signal == TERM && $code != 0 ]]; then check_equal "$what: exit code" 4 "$code"; fi
      state=$(ls broken | grep -c '^'$command'.state$')
      killed $command broken $signal --resume
      if ! seen=$("$mulligan" $command broken "${saved[@]}" --resume 2>&1); then
        flunk "$what (state: $state): resumes" "$seen"
      else
        check_equal "$what (state: $state): the result is the uninterrupted one's" "$expected" "$(left_by_$command broken)"
        check_equal "$what: no state is left" "" "$(ls broken | grep state)"
      fi
      rm -rf broken
    done
  done
done

# Killed in the middle of writing a state: process 4194304 lives on no machine. Scoring itself is confined and sees no other process.
for command in eval ttt; do
  cp -r before_$command torn
  for file in $command.state $command.state.seconds; do : >"torn/$file.tmp.4194304.0.0.${HOSTNAME//[^A-Za-z0-9-]/_}"; done
  check "$command beside half a state" "$mulligan" $command torn --resume
  check_equal "it is gone" "" "$(ls torn | grep state)"
  rm -rf torn
done

# A state in hand: stopped when the first batch is done.
cp -r before_ttt stopped
begin stopped ttt stopped "${saved[@]}"
wait_until test -e stopped/ttt.state
check_code "stopped with exit code 4" 4 end_by TERM
check_contains "and told how to go on" "the state is 'stopped/ttt.state'; continue with the same command and --resume" "$(cat stopped.err)"
check_equal "there is no score yet" 0 "$(ls stopped | grep -c ttt_result)"
seconds=$(sed -E 's/.*"ttt_plain":([0-9.e+-]+).*/\1/' stopped/ttt.state.seconds)
check_true "its seconds are booked" "$seconds > 0"
# Whatever the timer says, what was done before the signal is kept: here between two saves that are an hour apart.
cp -r before_ttt kept
begin kept ttt kept --set eval.save_seconds=3600
wait_until grep -qs '"queue":1' kept/order.jsonl # the first batch is done
check_code "between two saves: exit code 4" 4 end_by TERM
check_contains "the state is saved" "the state is 'kept/ttt.state'" "$(cat kept.err)"
check_contains "and continued behind its batches" "continues after" "$("$mulligan" ttt kept --set eval.save_seconds=3600 --resume 2>&1)"
check_equal "with the uninterrupted result" "$(left_by_ttt straight)" "$(left_by_ttt kept)"

mkdir -p trial
cp stopped/ttt.state trial/
check_refused "another scoring's state" 3 "differs in the settings" ttt stopped/weights.safetensors --output trial --resume --set ttt.chunk_tokens=32
check "other weights" "$mulligan" train small.toml --set run.directory=other --set run.seed=2
cp stopped/ttt.state other/
check_refused "another run's state" 3 "is the state of another scoring, which differs in" ttt other --resume
check_true "it is refused, not removed" "$(ls other | grep -c '^ttt.state$') == 1"
check_refused "a state is not thrown away" 2 "continue it with --resume, or remove it" ttt stopped
# The last byte of a tensor: a loss, or an adapter.
cp stopped/ttt.state kept.state
python3 -c 'data = bytearray(open("stopped/ttt.state", "rb").read()); data[-1] ^= 1; open("stopped/ttt.state", "wb").write(data)'
check_refused "a state that was edited" 3 "was changed after it was saved" ttt stopped --resume
cp kept.state stopped/ttt.state
printf x >>stopped/ttt.state
check_refused "a damaged state" 3 "stopped/ttt.state" ttt stopped --resume
check "without --resume it begins anew" "$mulligan" ttt stopped
check_equal "with the same result" "$(left_by_ttt straight)" "$(left_by_ttt stopped)"
cp straight/weights.safetensors alone.safetensors
check_refused "no run, no state" 2 "is not in a run directory" eval alone.safetensors --config small.toml --resume
