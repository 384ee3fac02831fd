#!/usr/bin/env bash
# Scoring by several processes: eval and test-time training give what one process gives, to the last digit; what is refused, and
# what happens to one of them.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
cat >>run.toml <<'TOML'
drop_remainder = false
[ttt]
batch_documents = 1
context_tokens = 64
chunk_tokens = 16
prefix_documents = 3
phases = 1
audit = "audit.jsonl"
[ttt.adapters]
plugin = "doc_lora"
rank = 4
alpha = 4.0
[ttt.optimizer]
plugin = "adamw"
lr = 0.01
beta1 = 0.0
beta2 = 0.999
eps = 1e-10
weight_decay = 1.0
[ttt.base]
plugin = "global_sgd"
lr = 0.001
chunk_tokens = 64
batch_rows = 2
TOML
"$mulligan" train run.toml --set run.directory=trained --quiet >/dev/null || exit 1

score_by() { run_ranks score "$@"; } # score_by SIZE COMMAND ARGUMENT...: output of rank R in score.R
last_evaluation() { tail -n 1 trained/evaluations.jsonl | python3 -c 'import json, sys
event = json.load(sys.stdin)
print(*[repr(event[key]) for key in ("val_loss_nats", "val_bpb", "val_tokens", "val_bytes")])'; }
ttt_scores() { python3 -c 'import json, sys
result = json.load(open(sys.argv[1] + "/ttt_result.json"))
for side in ("with_ttt", "without_ttt"): print(*[repr(result[side][key]) for key in ("val_loss_nats", "val_bpb", "tokens", "bytes")])
print([batch["running"]["loss_sum_nats"] for batch in result["batches"]])' "$1"; }
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/ttt_result.json"))[sys.argv[2]])' "$1" "$2"; }

check "one process evaluates" score_by 1 eval trained
alone=$(last_evaluation)
check_equal "there is a score" 4 "$(wc -w <<<"$alone")"
check "two processes evaluate" score_by 2 eval trained
check_equal "two give the score of one" "$alone" "$(last_evaluation)"
check_equal "one line for each evaluation" 2 "$(wc -l <trained/evaluations.jsonl)"
check_equal "the second rank says nothing" "" "$(cat score.1)"

check "one process with four lanes" score_by 1 ttt trained --output one --set ttt.lanes=4
for size in 2 4; do
  check "$size processes with four lanes" score_by $size ttt trained --output by$size --set ttt.lanes=4
  check_equal "$size give the scores of one" "$(ttt_scores one)" "$(ttt_scores by$size)"
  check_equal "and its order of scores and updates" "$(cat one/audit.jsonl)" "$(cat by$size/audit.jsonl)"
  check_equal "and say how many they were" "4 $size" "$(field by$size lanes) $(field by$size ranks)"
done
check_equal "all documents" "True" "$(python3 -c 'import json; r = json.load(open("by2/ttt_result.json")); print(sum(b["documents"] for b in r["batches"]) == r["documents"] == 6)')"
check "as many lanes as ranks, where nothing is said" score_by 2 ttt trained --output default
check_equal "they are two" "2 2" "$(field default lanes) $(field default ranks)"

check_equal "fewer lanes than ranks are refused" no "$(score_by 2 ttt trained --output few --set ttt.lanes=1 >/dev/null && echo yes || echo no)"
check_contains "in a sentence" "ttt.lanes" "$(cat score.0)"
check_equal "and nothing is written" no "$([[ -e few/ttt_result.json ]] && echo yes || echo no)"
for command in eval ttt; do
  check_equal "$command: --resume is refused" no "$(score_by 2 $command trained --resume >/dev/null && echo yes || echo no)"
  check_contains "$command: in a sentence" "keeps no state" "$(cat score.0)"
done

# A rank that is killed in the midst of it: the other ends with the verdict, and the result stays what it was.
cp -r one kept
spawn_ranks killed 2 ttt trained --output kept --set ttt.lanes=4 --set ttt.adapters.steps=1000
wait_until grep -qs "lanes of batches on 2 ranks" killed.0
kill -KILL "${processes[1]}"
check_code "the other ends with 5" 5 wait "${processes[0]}"
check_contains "and names it" "rank 1" "$(tail -n 1 killed.0)"
check_equal "the earlier result is there" "$(ttt_scores one)" "$(ttt_scores kept)"

# SIGTERM to one of them stops both.
spawn_ranks stopped 2 ttt trained --output stopped --set ttt.adapters.steps=1000
wait_until grep -qs "lanes of batches on 2 ranks" stopped.0
kill -TERM "${processes[1]}"
check_code "a rank that is told to stop ends with 4" 4 wait "${processes[1]}"
check_code "and so does the other" 4 wait "${processes[0]}"
