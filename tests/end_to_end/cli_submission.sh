#!/usr/bin/env bash
# mulligan record: three seeds of a tiny model to a submission's folder, stopped and gone on with on the way; every broken rule
# refused with its reason; --verify of that folder, of spoilt copies, and of one as others publish them.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4
{ record_config "$work/data" 1.0; wide_ledger; } >small.toml # strict rules take no less
facts=(--author "A. Author" --github-id author --name "A small record" --source "$root")
reference=(--reference 9.5 9.6 9.55 --reference-name "a worse one")
record=(record small.toml --seeds "42,314,1337" --out submission --artifacts "${facts[@]}" "${reference[@]}")

# Stopped in the second run, then the same command again.
begin first "${record[@]}"
wait_until test -e runs/small_record/train_seed314.log
check_code "a stopped record" 4 end_by TERM
check_contains "says that it goes on" "the same command goes on where it was" "$(cat first.err)"
check_equal "and leaves no half of a submission" "" "$(ls -d submission* 2>/dev/null)"
see_all "the same command goes on" 0 "$mulligan" "${record[@]}"
check_equal "without training the first seed again" 1 "$(grep -c '^== seed 42, training' runs/small_record/train_seed42.log)"
check_equal "nor scoring it" 1 "$(grep -c '^== seed 42, test-time training' runs/small_record/train_seed42.log)"
check_contains "the decision against the reference" "against a worse one: ACCEPT" "$seen"
check_equal "nothing temporary is left" "" "$(ls -d submission.* .submission* 2>/dev/null)"
check_equal "the folder" "README.md artifact_seed1337.mulligan artifact_seed314.mulligan artifact_seed42.mulligan config.toml evaluation.pack source.tar.br submission.json train_seed1337.log train_seed314.log train_seed42.log unpack.cpp.gz" \
  "$(find submission -type f -printf '%f\n' | LC_ALL=C sort | xargs)"

for seed in 42 314 1337; do
  check_equal "seed $seed has its run's score" "$(score runs/small_record/seed_$seed/ttt_result.json with_ttt)" "$(score submission/submission.json $seed)"
  for stage in training quantisation "test-time training"; do
    check_contains "its log has the $stage" "== seed $seed, $stage" "$(cat submission/train_seed$seed.log)"
  done
done
check_equal "the packed source has the bytes that were counted" "$(json submission/submission.json bytes_code)" "$(($(stat -c %s submission/evaluation.pack) + $(stat -c %s submission/unpack.cpp.gz)))"
check_equal "which are the ledger's" "$(json runs/small_record/seed_42/ledger.json code_source)" "$(json submission/submission.json bytes_code)"
check "its README unpacks the counted source" bash -c "cd submission && zcat unpack.cpp.gz | g++ -std=c++20 -O2 -x c++ - -o ../unpack && ../unpack evaluation.pack ../evaluation && test -s ../evaluation/launch/evaluator/main.cpp"
if command -v brotli >/dev/null; then
  check "the packed source is whole" bash -c "brotli -d -c submission/source.tar.br | tar t | grep -q '^tools/record/verify.cpp$'"
else
  echo "skipped - the packed source is whole (brotli is not installed)"
fi
check_contains "README states the mean" "$(printf 'Mean %.8f' "$(json submission/submission.json val_bpb)")" "$(cat submission/README.md)"
check_contains "and the overlap" "Overlap: of the validation text" "$(cat submission/README.md)"
check_contains "and the rule of bytes" 'data.byte_rule = "original"' "$(cat submission/README.md)"
check_equal "as submission.json does" original "$(json submission/submission.json byte_rule)"
check "it is found sound" "$mulligan" record --verify submission
check_contains "by all checks" "12 passed, 0 warnings, 0 failed, 0 skipped" "$("$mulligan" record --verify submission --json findings.json)"
check_equal "also for programs" R01 "$(json findings.json id)"
see_all "its models scored again" 0 "$mulligan" record --verify submission --rerun --runs again
check_contains "have the same scores to the last bit" "PASS R13" "$seen"
check_contains "for each seed" "difference 0.0e+00; seed 314" "$seen"
check "a submission is a reference" "$mulligan" stats accept --new 1.0 1.01 0.99 --reference submission --bytes-per-token 3

# A plugin of one's own counts as code: its file, as an archive.
mkdir own
cp "$build/lib/mulligan/plugins/mulligan_doc_lora.so" own/
check "a record with a plugin of one's own" "$mulligan" record small.toml --seeds 7 --out with_own "${facts[@]}" --plugin-path "$work/own" \
  --runs runs/with_own
check_true "which counts" "$(json with_own/submission.json bytes_code) > $(json submission/submission.json bytes_code) + 10000"
check_equal "with the bytes that are shipped" "$(json with_own/submission.json bytes_code)" \
  "$(($(stat -c %s with_own/evaluation.pack) + $(stat -c %s with_own/unpack.cpp.gz) + $(stat -c %s with_own/own_code.tar.br)))"
check "it is found sound" "$mulligan" record --verify with_own

# Every rule before the start, in one list.
see_all "a dry run of kept rules" 0 "$mulligan" record small.toml --seeds 1 --source "$root" --dry-run --runs runs/dry
for rule in stages budgets source "training and validation text apart" "bytes of model and code" "validation set" \
  "memory of training" "memory of test-time training"; do
  check_contains "names the rule: $rule" "$rule" "$seen"
done
seen=$("$mulligan" record small.toml --seeds 1 --source "$root" --dry-run --runs runs/dry --set ledger.artifact_bytes=1000 \
  --set train.budget_seconds=1000 --set ttt.document_fraction=0.5 2>&1)
check_equal "a dry run of broken rules" 2 $?
for problem in "of ledger.artifact_bytes = 1000" "of ledger.train_seconds = 1000" "ttt.document_fraction = 0.5"; do
  check_contains "names the problem: $problem" "$problem" "$(tail -n 1 <<<"$seen")"
done
check_equal "and nothing is begun" "small_record with_own" "$(ls runs | xargs)"
check_contains "its finer codes and their evaluation fit into the limit" " below the limit of 16,000,000 by " \
  "$("$mulligan" quantize "$root/configs/records/pr1886_fine.toml" --dry-run --source "$root" | grep '^artifact + code of an evaluation')"

# Refused before anything is trained.
check_refused "a folder that exists" 2 "'submission' exists" "${record[@]}"
check_refused "a seed twice" 2 "names a seed twice" record small.toml --seeds 1,1 --out x "${facts[@]}"
check_refused "no author" 2 "needs --author" record small.toml --seeds 1 --out x
check_refused "no budget" 2 "sets not all of train_seconds, eval_seconds" record small.toml --seeds 1 --out x "${facts[@]}" --set ledger.eval_seconds=0
check_refused "budgets beyond the track's" 2 "more than the 600 s" record small.toml --seeds 1 --out x "${facts[@]}" --track 10min_16mb
check_refused "one seed against a reference" 2 "two seeds or more" record small.toml --seeds 1 --out x "${facts[@]}" "${reference[@]}"
check_refused "scores of nobody" 2 "--reference-name" record small.toml --seeds 1,2 --out x "${facts[@]}" --reference 1.0
check_refused "a score that is none" 2 "finite numbers above 0" record small.toml --seeds 1,2 --out x "${facts[@]}" --reference nan --reference-name x
check_refused "no source tree" 3 "not mulligan's source tree" record small.toml --seeds 1 --out x "${facts[@]:0:6}" --source "$work"
mkdir tree
cp -r "$root/framework" "$root/plugins" "$root/optimizers" "$root/ttt" "$root/launch" "$root/tools" "$root/lab" "$root/configs" tree
echo "// changed" >>tree/framework/core/error.h
check_refused "source that the program was not built from" 2 "is not the source that this program was built from" \
  record small.toml --seeds 1 --out x "${facts[@]:0:6}" --runs runs/tree --source tree
cp -r data overlap
python3 - overlap <<'END'
import glob, struct, sys
folder = sys.argv[1]
train, val = (sorted(glob.glob(f"{folder}/fineweb_{side}_*.bin"))[0] for side in ("train", "val"))
header, body = open(train, "rb").read()[:1024], open(train, "rb").read()[1024:]
extra = open(val, "rb").read()[1024:]
count = (len(body) + len(extra)) // 2
open(train, "wb").write(header[:8] + struct.pack("<i", count) + header[12:] + body + extra)
END
rm overlap/manifest.json
check_refused "validation text in the training data" 3 "the validation text" record small.toml --seeds 1 --out x \
  "${facts[@]}" --runs runs/overlap --set "data.train=$work/overlap/fineweb_train_*.bin"
rm -rf runs/overlap
check_equal "and nothing is begun" "small_record with_own" "$(ls runs | xargs)"

# Refused by a run: budgets of seconds and bytes. No folder, and the same sentence when it is tried again.
broken() { # broken WHAT TEXT SETTING
  check_refused "$1" 1 "$2" record small.toml --seeds 1 --out x "${facts[@]}" --runs "runs/broken" --set train.steps=2 --set "$3"
  check_refused "$1, tried again" 1 "$2" record small.toml --seeds 1 --out x "${facts[@]}" --runs "runs/broken" --set train.steps=2 --set "$3"
  check_equal "$1: no folder" "" "$(ls -d x* 2>/dev/null)"
  rm -rf runs/broken
}
broken "too many seconds of training" "ledger.train_seconds" ledger.train_seconds=0.0001
check_refused "too many bytes" 2 "of ledger.artifact_bytes = 1000" record small.toml --seeds 1 --out x "${facts[@]}" --runs runs/broken \
  --set ledger.artifact_bytes=1000
broken "too many seconds of scoring" "ledger.eval_seconds" ledger.eval_seconds=0.001
check_refused "runs of other settings" 2 "holds a run of other settings" record small.toml --seeds 42 --out x "${facts[@]}" --set train.steps=3

# A spoilt copy.
cp -r submission spoilt
sed -i '0,/training/s//draining/' spoilt/train_seed42.log
check_refused "an edited line of a log" 3 "'train_seed42.log' has been changed" record --verify spoilt

# A better score, told alike in submission.json, the log, README and the sums: only scoring again finds it.
better() {
  python3 - <<'END'
import hashlib, json, math
s = json.load(open("submission.json"))
readme, log = open("README.md").read(), open("train_seed42.log").read()
r = s["seed_results"]["42"]
old = dict(r)
r["val_loss"] -= 0.01
r["val_bpb"] = r["val_loss"] * r["val_tokens"] / math.log(2) / r["val_bytes"]
log = log.replace(f"val_loss:{old['val_loss']} val_bpb:{old['val_bpb']}", f"val_loss:{r['val_loss']} val_bpb:{r['val_bpb']}")
for key in ("val_bpb", "val_loss"):
    readme = readme.replace(f"{old[key]:.8f}", f"{r[key]:.8f}")
    values = [one[key] for one in s["seed_results"].values()]
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    readme = readme.replace(f"{s[key]:.8f}", f"{mean:.8f}").replace(f"{s[key + '_std']:.8f}", f"{deviation:.8f}")
    s[key], s[key + "_std"] = mean, deviation
open("README.md", "w").write(readme)
open("train_seed42.log", "w").write(log)
for name in s["files"]:
    s["files"][name] = hashlib.sha256(open(name, "rb").read()).hexdigest()
json.dump(s, open("submission.json", "w"))
END
}
rm -rf spoilt
cp -r submission spoilt
(cd spoilt && better)
check "a folder that agrees with itself" "$mulligan" record --verify spoilt
check_refused "its models scored again" 3 "R13: seed 42 has" record --verify spoilt --rerun --runs again
rm spoilt/artifact_seed314.mulligan
check_refused "a folder without a model" 3 "with --artifacts" record --verify spoilt --rerun
check_refused "--rerun without a folder" 2 "--verify" record small.toml --rerun

# As others publish them.
mkdir others
echo "# A record" >others/README.md
head -c 16594 /dev/zero >others/train_gpt.py
echo '{"author": "a", "github_id": "a", "name": "n", "val_bpb": 1.08079, "seed_results": {"42": {"val_bpb": 1.08079}}}' >others/submission.json
printf 'seed: 42\nquantized_ttt val_loss:2.79180191 val_bpb:1.08079352 eval_time:366525ms\n' >others/train_seed42.log
see "one by others" 0 "$mulligan" record --verify others
check_contains "what could not be checked is said" "SKIP R11" "$seen"
check_refused "whose models this program cannot score" 3 "was not made by mulligan record" record --verify others --rerun
check_refused "no folder" 3 "is not a folder" record --verify nowhere
