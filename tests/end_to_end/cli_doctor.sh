#!/usr/bin/env bash
# mulligan doctor on healthy runs, and on data and losses with a planted fault: the right check reports it.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
flawed=$build/tests/flawed_plugins

tiny_corpus corpus
seen=$("$mulligan" prepare corpus --out data --vocab-size 512 --validation-documents 4)
check_contains "prepare audits what it has made" "audit       10 checks of the tokens, the worst PASS" "$seen"
# What it has made stays, but a failed check is no success.
mkdir near && for file in corpus/*1.txt; do { cat "$file"; echo "an end of its own"; } >near/${file##*/}; done
see_all "prepare: a check of the output fails: exit code" 3 "$mulligan" prepare corpus --validation near --out copied --vocab-size 512
check_contains "prepare: a check of the output fails: it is named" "mulligan: 'copied' is written, but check D25 (" "$(tail -n 1 <<<"$seen")"
check "prepare: a check of the output fails: it is there" "$mulligan" prepare --check copied
small_config "$work/data" >small.toml

healthy() { # healthy WHAT CHECKS ARGUMENT...: at least so many checks, and none has anything to say
  local what=$1 checks=$2 seen
  shift 2
  see_all "healthy: $what: exit code" 0 "$mulligan" doctor small.toml "$@"
  check_contains "healthy: $what: nothing to say" " passed, 0 warnings, 0 failed, 0 skipped" "$seen"
  check_true "healthy: $what: checks" "$(grep -c "^PASS D" <<<"$seen") >= $checks"
}
healthy "fp32" 37
healthy "bf16" 37 --set train.compute_dtype=bf16
healthy "fp16" 37 --set train.compute_dtype=fp16
healthy "softcap" 37 --set model.softcap=15 --set loss.plugin=softcap_ce
healthy "no tied head" 37 --set model.tied_head=false
healthy "another backend" 29 --stage data --stage loss --stage weights --stage forward --set backend.plugin=cuda --set backend.device=emulated

# sick WHAT ID TEXT CODE SETTING...: this check alone fails, with this text in its message.
sick() {
  local what=$1 id=$2 text=$3 seen
  shift 3
  see "$what: exit code" 1 "$mulligan" doctor small.toml --json doctor.json "$@" 2>/dev/null
  check_contains "$what: caught by $id" "FAIL $id" "$seen"
  check_contains "$what: in words" "$text" "$seen"
  check_equal "$what: for programs" FAIL "$(json doctor.json verdict)"
}

# spoil FOLDER WORDS: a copy of the data whose training shards a Python expression over `t`, an array of ids, has changed.
spoil() {
  cp -r data "$1"
  python3 - "$1" "$2" <<'END'
import array, glob, sys
for path in glob.glob(sys.argv[1] + "/fineweb_train_*.bin"):
    raw = open(path, "rb").read()
    t = array.array("H", raw[1024:])
    exec(sys.argv[2])
    open(path, "wb").write(raw[:1024] + t.tobytes())
END
}
settings() { echo --set "data.train=$work/$1/fineweb_train_*.bin" --set "data.validation=$work/data/fineweb_val_*.bin"; }

unknown=3
spoil unknown "t = array.array('H', [1] + [$unknown] * (len(t) - 1))"
# shellcheck disable=SC2046
sick "a corpus of unknown tokens" D21 "are token $unknown (<unk>)" $(settings unknown)
# Text whose documents have no beginning: told by the doctor, and refused before the first step where [ttt] adapts to documents.
spoil endless 't = array.array("H", [300 if token == 1 else token for token in t])'
rm endless/manifest.json
seen=$("$mulligan" doctor small.toml --stage data --set "data.train=$work/endless/fineweb_train_*.bin" 2>&1)
check_contains "documents without a beginning" "WARN D41  beginnings of documents, training data" "$seen"
check_contains "on one side alone" "PASS D41  beginnings of documents, validation data" "$seen"
{
  cat small.toml
  record_sections
} >adapted.toml
check_refused "are refused where [ttt] adapts to them" 3 "no BOS token (1), but test-time training" train adapted.toml \
  --set run.directory=endless_run --set "data.train=$work/endless/fineweb_train_*.bin"
check_equal "before anything is written" "" "$(ls endless_run 2>none)"
sick "a loss in bits" D01 "the loss is in bits" --set loss.plugin=flawed_loss --set loss.path="$flawed/mulligan_flawed_loss.so" --set loss.how=bits
# A sound loss that is not a cross entropy trains without a message if its plugin declares it, and is refused otherwise.
loss() { echo --set loss.plugin="$1" --set loss.path="$flawed/mulligan_$1.so"; }
check "a focal loss trains under the default checks" "$mulligan" train small.toml $(loss focal_loss) --set run.directory=focal
check_equal "and nothing is held against it" "" "$(grep -oE '\b(WARN|FAIL) D(01|02|17|26|27)\b' focal/log.txt | sort -u)"
sick "a focal loss that does not say what it is" D01 "cross_entropy = false" $(loss undeclared_loss)

check_contains "one stage alone" "15 passed" "$("$mulligan" doctor small.toml --stage data)"
see_all "a check that cannot be made is no success" 2 "$mulligan" doctor small.toml --set backend.plugin=null
check_contains "and says why" "SKIP D01" "$seen"

# A finished run: what it recorded. Three steps of training.
"$mulligan" train small.toml --quiet --set train.steps=3 --set run.directory=done >/dev/null 2>&1
see_all "a finished run: exit code" 0 "$mulligan" doctor done --json done.json
check_contains "a finished run: what it found at its end" "PASS D28" "$seen"
check_contains "a finished run: the rates it had" "PASS D29  learning rate that [optimizer.matrices] had" "$seen"
sed -i 's/"verdict": "PASS"/"verdict": "FAIL"/' done/result.json
see_all "a finished run in which a check failed" 1 "$mulligan" doctor done
"$mulligan" train small.toml --quiet --set train.steps=3 --set run.directory=unseen --set doctor.level=off >/dev/null 2>&1
see_all "a finished run that made no checks" 2 "$mulligan" doctor unseen
check_contains "and says why" "SKIP D26" "$seen"
check "which may be allowed" "$mulligan" doctor unseen --allow-skip
printf '{' >unseen/result.json
check_refused "a damaged result" 3 "result.json" doctor unseen
check_refused "a folder that is not a run" 2 "not a run directory" doctor data
check_refused "settings together with a run directory" 2 "for configurations" doctor done --set train.steps=4
check_refused "no configuration" 2 "nothere.toml" doctor nothere.toml
