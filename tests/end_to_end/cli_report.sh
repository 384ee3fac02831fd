#!/usr/bin/env bash
# report.html at the end of training and after quantize, eval and ttt; report and compare as commands.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4
record_config "$work/data" >small.toml

# drawn FILE CHART: how many curves and bars the chart draws.
drawn() { tr '\n' ' ' <"$1" | sed 's/<\/figure>/&\n/g' | grep "id=\"$2\"" | grep -o 'class="\(curve\|bar\) [a-z0-9 ]*" d="M' | wc -l; }
# has_chart WHAT FILE CHART COUNT
has_chart() { check_equal "$1" "$4" "$(drawn "$2" "$3")"; }
well_formed() { # well_formed FILE
  check "$1 is well-formed" python3 -c 'import re, sys, xml.etree.ElementTree as t
t.fromstring(re.sub("^<!DOCTYPE html>", "", open(sys.argv[1], encoding="utf-8").read()))' "$1"
}

check_contains "train says where the report is" "runs/small/report.html" \
  "$("$mulligan" train small.toml --set train.log_every=4)"
page=runs/small/report.html
has_chart "loss curves" $page loss-curve 6       # three, and their keys in the legend
check_contains "no artifact yet" "There is no artifact yet" "$(cat $page)"
well_formed $page

check "quantize" "$mulligan" quantize runs/small --source "$root"
has_chart "bytes of the artifact" $page artifact-bar 2
check "eval of the artifact" "$mulligan" eval runs/small/artifact.mulligan
check_contains "the report shows the artifact's score" "artifact.mulligan" "$(cat $page)"
check_contains "and shows it first" "val_bpb, quantised" "$(cat $page)"
check "ttt of the artifact" "$mulligan" ttt runs/small/artifact.mulligan
has_chart "running score of test-time training" $page ttt-score-curve 4
check_true "adapters' norms" "$(drawn $page ttt-drift-curve) >= 4"
check_true "gain by document length" "$(drawn $page ttt-gain-bar) >= 1"
well_formed $page

# What is scored under other settings than the run's is kept apart: none of the run's own files change.
headline() { cat runs/small/{result,ttt_result,ledger,quantize_result}.json runs/small/{evaluations,metrics}.jsonl | sha256sum; }
before=$(headline)
seen=$("$mulligan" eval runs/small --set eval.packed_sequences=1)
check_contains "eval under another packing is no score of the run" "not a score of the run, because of eval.packed_sequences" "$seen"
check "ttt of another share is a trial" "$mulligan" ttt runs/small/artifact.mulligan --set ttt.document_fraction=0.5 \
  --output runs/small
cp runs/small/weights.safetensors runs/small/copy.safetensors
check "so are other weights" "$mulligan" eval runs/small/copy.safetensors
check_equal "trials leave the run's scores alone" "$before" "$(headline)"
check_equal "each trial has a file" 3 "$(ls runs/small/trials/*.json | wc -l)"
check_contains "with its digests" "$(sha256sum <data/tokenizer.model | cut -c1-64)" "$(cat runs/small/trials/eval-*.json)"
check_contains "the report lists them apart" "eval.packed_sequences = 1" "$(cat $page)"
check "where nothing that moves the score differs" "$mulligan" eval runs/small/artifact.mulligan --set run.threads=1
check_equal "it is the run's" 2 "$(wc -l <runs/small/evaluations.jsonl)"

cp $page kept.html
rm $page
check "report" "$mulligan" report runs/small
check "the report made again is the same" cmp kept.html $page
check "train another seed" "$mulligan" train small.toml --set train.log_every=4 --set run.seed=2 --set run.directory=runs/other
check_refused "ttt of one run into another" 2 "directory of another run" ttt runs/small --output runs/other
seen=$("$mulligan" report runs/small runs/other --output compare.html)
check_contains "compare: figures" "val_bpb, quantised" "$seen"
check_contains "compare: keys" "run.seed" "$seen"
check_contains "compare: statistics over seeds" "standard deviation" "$seen"
for chart in loss loss-seconds bpb lr gradient speed; do has_chart "compare: curves of $chart" compare.html compare-$chart-curve 4; done
well_formed compare.html

check "train another configuration" "$mulligan" train small.toml --set train.log_every=4 --set train.clip_norm=0.5 \
  --set run.directory=runs/third --set run.name='third <b> & more'
seen=$("$mulligan" report runs/small runs/other runs/third --output three.html)
check_contains "compare: tests between configurations" "| train.clip_norm=0.5" "$seen"
check_contains "which the page has, too" "below three there is no interval" "$(cat three.html)"
well_formed three.html
check_equal "the same as stats" "$("$mulligan" stats runs/small runs/other runs/third)" "$(sed -n '/^val_bpb, [0-9]* validation/,$p' <<<"$seen" | sed '/^three.html$/d' | sed '${/^$/d}')"
check_contains "stats by a setting" "| 0.5" "$("$mulligan" stats runs/small runs/other runs/third --by train.clip_norm)"
check_contains "stats of the mean training loss" "steps 0 to" "$("$mulligan" stats runs/small runs/other --metric train_loss_nats)"
check_refused "stats: a figure that a run does not have" 3 "has no ttt_bpb" stats runs/small runs/other --metric ttt_bpb
check_refused "stats: an unknown setting" 2 "no setting 'train.nothing'" stats runs/small runs/other --by train.nothing

check_refused "stats accept: runs of other settings" 2 "not runs of one condition" stats accept --new runs/small runs/other runs/third --reference 9
check "stats accept: runs of two seeds are taken" grep -q "fewer than three runs" \
  <("$mulligan" stats accept --new runs/small runs/other --reference 9 2>&1)

check_refused "metrics of two runs" 2 "are of one run directory" report runs/small runs/other --csv two.csv
check_refused "metrics in place of the page" 2 "excludes" report runs/small --csv one.csv --output page.html
check_refused "report: nothing named" 2 "a report is of run directories" report
check_refused "report: no run" 3 "nothere" report nothere
