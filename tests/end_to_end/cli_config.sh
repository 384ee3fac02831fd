#!/usr/bin/env bash
# mulligan config and plugins on the files of this repository.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
quickstart=$root/configs/quickstart.toml
record=$root/configs/records/pr1886.toml

check_contains "quickstart.toml is complete" ": ok," "$("$mulligan" config check "$quickstart")"

# The printed configuration is complete: read back it is the same, with every plugin's keys.
"$mulligan" config print "$record" --set train.steps=7 >resolved.toml
check_contains "origin of a key: command line" "steps = 7" "$(grep -- '--set' resolved.toml)"
check_contains "origin of a key: file and line" "pr1886.toml:" "$(grep '^layers = ' resolved.toml)"
check_contains "keys of plugins with their defaults" "iterations = 5" "$(cat resolved.toml)"
check_equal "printing and reading back changes nothing" "train.steps: 0 -> 7" "$("$mulligan" config diff "$record" resolved.toml)"

check_equal "docs/commands.md and docs/plugin_keys.md are what the program prints" "" "$("$root/launch/site/references" "$mulligan" --check 2>&1)"

printf 'extends = "%s"\n[model]\nlayers = 8\n' "$quickstart" >variant.toml
check_contains "a variant extends a base" "model.layers: 6 -> 8" "$("$mulligan" config diff "$quickstart" variant.toml)"
check_contains "and is a run of its own" 'directory = "runs/variant"' "$("$mulligan" config print variant.toml)"

for plugin in cpu null softcap_ce cross_entropy adamw muon sgd warmdown cosine sgdr; do
  check_contains "plugin $plugin is found" " $plugin " "$("$mulligan" plugins)"
done
check_contains "a plugin's keys" "nesterov" "$("$mulligan" plugins muon)"
check_contains "plugins as JSON" '"places"' "$("$mulligan" plugins --json)"
