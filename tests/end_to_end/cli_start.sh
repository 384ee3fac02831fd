#!/usr/bin/env bash
# A stranger's path: a starter configuration for a folder of text, data, a run, and what it leaves for other tools.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_corpus texts
check_refused "config init: no data" 2 "lacks --data FOLDER" config init
check_refused "config init: a folder that does not exist" 3 "is not a folder" config init --data nothere
mkdir empty
check_refused "config init: an empty folder" 3 "neither text nor a manifest" config init --data empty
seen=$("$mulligan" config init mine.toml --data texts --seconds 4)
check_contains "config init says what comes next" "mulligan prepare texts --out data/texts --vocab-size 512" "$seen"
check_true "it is a page at most" "$(wc -l <mine.toml) <= 30"
check_refused "config init: a file that exists" 2 "'mine.toml' exists" config init mine.toml --data texts
check "--overwrite replaces it" "$mulligan" config init mine.toml --data texts --seconds 4 --overwrite
check "config check" "$mulligan" config check mine.toml
check_contains "the shipped base is an origin" "mulligan:quickstart:" "$("$mulligan" config print mine.toml)"
printf 'extends = "mulligan:quickstar"\n' >wrong.toml
for record in 2014 2135; do # which extend another one
  echo "extends = \"mulligan:$record\"" >record.toml
  check_equal "the shipped configuration of record $record is that of configs/records" \
    "$(cd "$root" && "$mulligan" config print configs/records/$record.toml --set run.name=record | sed 's/ *#.*//')" \
    "$("$mulligan" config print record.toml | sed 's/ *#.*//')"
done
check_refused "a shipped configuration that does not exist" 2 "wrong.toml:1: there is no shipped configuration 'mulligan:quickstar'" config check wrong.toml
check "prepare, as it said" bash -c "PATH=$(dirname "$mulligan"):\$PATH; $(sed -n 's/^  \(mulligan prepare.*\)/\1/p' <<<"$seen")"
# Names that a shell or a pattern would read otherwise: what is printed can be pasted, and what is written finds the shards.
for name in 'my texts [v1]' 'back\slash' "a 'quote' * ?" 'tab	and #hash' -texts; do
  mkdir "./$name"
  cp texts/* "./$name/"
  said=$("$mulligan" config init odd.toml --data="$name" --seconds 4 --overwrite)
  check "config init, '$name': prepare, as it said" \
    bash -c "PATH=$(dirname "$mulligan"):\$PATH; $(sed -n 's/^  \(mulligan prepare.*\)/\1/p' <<<"$said") && $(sed -n 's/^  \(mulligan train.*\)/\1/p' <<<"$said") --set train.steps=1"
  rm -r runs/odd
done
check "config init: for a GPU" "$mulligan" config init gpu.toml --data data/texts --backend cuda
check "which is a configuration that can be trained" "$mulligan" config check gpu.toml
check "as the shipped Qwen2 is" "$mulligan" config check "$root/configs/qwen2.toml"
check_refused "a tokenizer of another size" 2 "data.exact_vocabulary" train mine.toml --set model.vocabulary=640 --set run.directory=other
check "config init: prepared data" "$mulligan" config init prepared.toml --data data/texts
check_contains "takes the tokenizer's size" "vocabulary = $(json data/texts/manifest.json vocabulary)" "$(cat prepared.toml)"

# A pipe gets plain text, and --quiet only the result.
"$mulligan" train mine.toml --quiet >train.out 2>train.err
check_equal "train" 0 $?
check_equal "nothing on stderr" "" "$(cat train.err)"
check_equal "event files while training" 1 "$(find runs/mine/tensorboard -name 'events.out.tfevents.*' | wc -l)"
check_equal "no escape sequences" 0 "$(grep -c $'\x1b' train.out)"
check_equal "--quiet: no step lines" 0 "$(grep -c '^step ' train.out)"
check_contains "--quiet: the result" "val_bpb" "$(cat train.out)"
check_true "the log has the step lines all the same" "$(grep -c '^step ' runs/mine/log.txt) > 1"
check_contains "and the time left" " left" "$(grep '^step .* tokens/s' runs/mine/log.txt | head -n 1)"

# On a terminal of 80 columns: one live line, no wider, cleared at the end; NO_COLOR takes the colours.
on_terminal() { script -qec "stty columns 80; $*" /dev/null </dev/null; }
if command -v script >/dev/null; then
  live_lines() { tr '\r' '\n' <terminal.out | sed 's/\x1b\[[0-9;]*[mK]//g' | grep -a 'training .*left'; }
  is_refreshed() { (($(live_lines | uniq | wc -l) > 1)); }
  # However slow the machine is: until the line was drawn anew.
  TERM=xterm on_terminal "echo \$\$ >live.process; exec '$mulligan' train mine.toml --set run.directory=runs/live --set train.budget_seconds=600" >terminal.out 2>&1 &
  terminal=$!
  wait_until is_refreshed && pass "a live line on a terminal, drawn anew"
  kill -INT "$(<live.process)"
  wait $terminal
  live=$(live_lines)
  widest=$(awk '{ if (length($0) > w) w = length($0) } END { print w }' <<<"$live")
  check_true "which stays within 80 columns ($widest)" "$widest < 80"
  check_true "in colour" "$(grep -ac $'\x1b\[32m' terminal.out) > 0"
  TERM=xterm NO_COLOR=1 on_terminal "$mulligan" train mine.toml --overwrite --set train.budget_seconds=1.5 >terminal.out 2>&1
  check_equal "NO_COLOR: none" 0 "$(grep -ac $'\x1b\[[0-9;]*m' terminal.out)"
  TERM=dumb on_terminal "$mulligan" train mine.toml --overwrite --set train.budget_seconds=1.5 >terminal.out 2>&1
  check_equal "TERM=dumb: no escape sequences" 0 "$(grep -ac $'\x1b' terminal.out)"
  TERM=xterm on_terminal "$mulligan" train --hlep >terminal.out 2>&1
  check_contains "an error in colour" $'\x1b[1;31mmulligan:\x1b[0m unknown option' "$(cat terminal.out)"
else
  echo "skipped - a terminal's screen (script is not installed)"
fi

# Where and when.
check_equal "result.json: host" "$(hostname)" "$(json runs/mine/result.json host)"
check_equal "result.json: date" 1 "$(json runs/mine/result.json started | grep -cE "^$(date -u +%Y)-..-..T..:..:..Z$")"
check_true "result.json: duration" "$(json runs/mine/result.json duration_seconds) >= 1.5"
check_contains "result.json: command line" "train mine.toml --overwrite" "$(json runs/mine/result.json command)"
check_contains "report: host" "$(hostname)" "$(cat runs/mine/report.html)"

# For other tools.
check_refused "metrics: no run" 3 "no metrics.jsonl" report texts --csv x.csv
mkdir board && echo other >board/events.out.tfevents.1.other
check "metrics for other programs" "$mulligan" report runs/mine --tensorboard board --csv metrics.csv
steps=$(grep -c '"event":"step"' runs/mine/metrics.jsonl)
check_true "csv: a row per reported step and validation" "$(wc -l <metrics.csv) >= $steps + 1"
check_contains "csv: its columns" "step,elapsed_seconds,loss_nats" "$(head -n 1 metrics.csv)"
check "metrics once more" "$mulligan" report runs/mine --tensorboard board
check_equal "tensorboard: one event file of the run" 1 "$(find board -name 'events.out.tfevents.*.mulligan' | wc -l)"
check_equal "tensorboard: another program's file stays" other "$(cat board/events.out.tfevents.1.other)"
