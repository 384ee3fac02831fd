#!/usr/bin/env bash
# Every command on a run can be given in another folder than the one the run was started in: its relative paths are taken from there.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

mkdir start other && cd start || exit 1
tiny_data --validation-documents 4
{
  record_config data
  printf '[checkpoint]\nevery_steps = 5\n'
} >tiny.toml
check "train" "$mulligan" train tiny.toml --set train.steps=6 --set run.directory=runs/tiny
check "train another" "$mulligan" train tiny.toml --set train.steps=6 --set run.directory=runs/second
check_equal "the run records where it was started" "$work/start" "$(cat runs/tiny/started_in)"
check_contains "its configuration has the paths as they were given" 'tokenizer = "data/tokenizer.model"' "$(cat runs/tiny/config.toml)"
check "eval, where it was started" "$mulligan" eval runs/tiny
score=$(json runs/tiny/evaluations.jsonl val_bpb)

for folder in / "$work/other"; do
  cd "$folder" || exit 1
  check "eval in $folder" "$mulligan" eval "$work/start/runs/tiny"
  check "doctor in $folder" "$mulligan" doctor "$work/start/runs/tiny" --allow-skip
  check "quantize in $folder" "$mulligan" quantize "$work/start/runs/tiny"
  check "ttt in $folder" "$mulligan" ttt "$work/start/runs/tiny/artifact.mulligan" --output "$work/start/runs/tiny"
  check "generate in $folder" "$mulligan" generate "$work/start/runs/tiny" --prompt the --max-tokens 4
  check "report in $folder" "$mulligan" report "$work/start/runs/tiny"
  check "export in $folder" "$mulligan" export "$work/start/runs/tiny" --to hf "$work/exported${folder//\//_}"
done
cd / || exit 1
check "training goes on" "$mulligan" train "$work/start/runs/second/config.toml" --resume --set train.steps=8
check_equal "where it was" 8 "$(json "$work/start/runs/second/result.json" steps)"
cd "$work/other" || exit 1
check "eval by a relative path" "$mulligan" eval ../start/runs/tiny/weights.safetensors
check_equal "no score counts as one under other settings" "" "$(ls "$work/start/runs/tiny/trials" 2>/dev/null)"
check_equal "nothing is left in the other folder" "" "$(ls "$work/other")"
mkdir data && cp "$work/start/data"/* data/
check "--set names paths of this folder" "$mulligan" eval ../start/runs/tiny --set "data.validation=data/fineweb_val_*.bin"

# A project that was moved: the folder is named, and the current one takes its place.
cd "$work" && mv start moved && rm -r other
see_all "the folder is gone: exit code" 3 "$mulligan" eval moved/runs/tiny
check_contains "the folder is gone: it is named" "was started in '$work/start', which does not exist any more" "$seen"
cd moved || exit 1
check "where the project is now" "$mulligan" eval runs/tiny
