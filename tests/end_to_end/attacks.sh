#!/usr/bin/env bash
# The attacks of tests/attack in their short forms; CONTRIBUTING.md has the long ones. MULLIGAN_ATTACKS=10 makes every count
# ten times as large, as the long form does; MULLIGAN_ATTACK_SEED chooses other cases.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

times=${MULLIGAN_ATTACKS:-$(amount 1 10)}
seed=${MULLIGAN_ATTACK_SEED:-1}
chmod 755 "$work" # as root, some cases run as the user `nobody`
# Each case makes and removes a few hundred files: in memory the kernel takes a fourth of its time for that.
if [[ -w /dev/shm ]] && (($(df --output=avail --block-size=1M /dev/shm | tail -n 1) > 2000)); then
  TMPDIR=$(mktemp -d /dev/shm/mulligan_test.XXXXXX)
  clean_up() { rm -rf "$work" "$TMPDIR"; }
  chmod 755 "$TMPDIR"
  export TMPDIR
fi

attack() { # attack NAME COUNT
  check "$1: $(($2 * times)) cases, seed $seed, no finding" "$root/tests/attack/$1" --count $(($2 * times)) --seed "$seed" \
    --build "$build" --shim "$build/tests/attack/fault_shim.so" --subject "$work/subject"
}

attack signals 12 # first: the quickstart's model is part of its subject
attack kills 16
attack system_errors 24
attack mutations 80
attack odd_files 40
attack pairs 9
attack settings 30
