#!/usr/bin/env bash
# Plugins that fail: which plugin, kernel, program and step is named, what the exit code is, and that nothing trains on.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
flawed=$build/tests/flawed_plugins
[[ -f $flawed/mulligan_flawed_loss.so ]] || flunk "the flawed plugins are built: $flawed"

tiny_data --validation-fraction 0.1
small_config data >small.toml
# run WHAT...: a training run with a loss or schedule of the flawed plugins.
settings() {
  printf '%s\n' --set run.directory="$work/run_$RANDOM" --set train.steps=6 --set data.validation= "$@"
}
loss() { settings --set loss.plugin=flawed_loss --set loss.path="$flawed/mulligan_flawed_loss.so" --set loss.how="$1"; }
schedule() {
  settings --set schedule.plugin=flawed_schedule --set schedule.path="$flawed/mulligan_flawed_schedule.so" \
    --set schedule.how="$1" "${@:2}"
}

# Schedules: refused with plugin, section and step.
for how in negative nan infinite negative_factor; do
  mapfile -t arguments < <(schedule $how --set schedule.from_step=4)
  check_refused "a schedule that returns $how" 2 "[schedule]: schedule 'flawed_schedule'" train small.toml "${arguments[@]}"
  check_contains "it names the step ($how)" "for step 4 (" "$(cat refused.err)"
done
# Losses: what is not written is found before the first step; a kernel's sentence comes with its place.
for how in no_token_loss half_gradient; do
  mapfile -t arguments < <(loss $how)
  check_refused "a loss with $how" 2 "[loss]: loss 'flawed_loss'" train small.toml "${arguments[@]}"
  check_contains "it says what is not written ($how)" "is not written" "$(cat refused.err)"
done
mapfile -t arguments < <(loss throws)
check_refused "a kernel that throws" 1 "kernel 'flawed_loss_fwd' of loss 'flawed_loss'" train small.toml "${arguments[@]}"
check_contains "its own sentence is there" "failed: the kernel's own sentence" "$(cat refused.err)"
check_contains "the program is named" "program '" "$(cat refused.err)"

# mulligan plugins check.
check "plugins check: a shipped plugin" "$mulligan" plugins check adamw
check "plugins check: with a key" "$mulligan" plugins check sgdr --set period=20
check "plugins check: a file" "$mulligan" plugins check "$flawed/mulligan_flawed_loss.so"
check_contains "plugins check: a flaw's line" \
  "FAIL  the gradient of the logits equals finite differences: logits_gradient at " \
  "$("$mulligan" plugins check "$flawed/mulligan_flawed_loss.so" --set how=wrong_gradient 2>&1)"
check_refused "plugins check: exit code" 2 "1 of" plugins check "$flawed/mulligan_flawed_loss.so" --set how=wrong_gradient
check_refused "plugins check: an unknown plugin" 2 "did you mean 'adamw'?" plugins check adamv
check_refused "plugins check: an unknown key" 2 "beta3" plugins check adamw --set beta3=1
