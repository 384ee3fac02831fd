#!/usr/bin/env bash
# Ranks on three machines, which are network namespaces here: they meet, need one secret, notice a cut link, and stop together.
set -uo pipefail
[[ $0 == /* ]] || exec "$PWD/$0"
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
probe=${MULLIGAN_BUILD:-$PWD/build/release}/bin/mulligan_rank_probe

# shellcheck source=tests/multiprocess/namespaces.bash
source tests/multiprocess/namespaces.bash
enter_namespaces "ranks on several machines"
folder=$(mktemp -d) || exit 1
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
add_nodes 3

check() { # check WHAT CONDITION...
  if "${@:2}"; then echo "ok - $1"; else
    echo "not ok - $1"
    tail -n 5 "$folder"/rank* | sed 's/^/    /'
  fi
}
says() { grep -qF -- "$2" "$folder/rank$1"; } # says RANK TEXT
ended() { # ended CODES...: the exit codes of the ranks, in order
  [[ "${codes[*]}" == "$*" ]]
}

# start RANK [NAME=VALUE...] -- ARGUMENTS: two ranks for each node
declare -a ranks codes
start() {
  local rank=$1 variables=(RANK="$1" WORLD_SIZE=6 LOCAL_RANK=$(($1 % 2)) LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500)
  shift
  while [[ $1 != -- ]]; do variables+=("$1"); shift; done
  ip netns exec "node$((rank / 2))" env "${variables[@]}" "$probe" "${@:2}" >"$folder/rank$rank" 2>&1 &
  ranks[rank]=$!
}
finish() {
  codes=()
  for rank in 0 1 2 3 4 5; do
    wait "${ranks[rank]}" 2>/dev/null
    codes[rank]=$?
  done
}
all_there() { # waits until every rank has met the others
  local rank
  for rank in 0 1 2 3 4 5; do
    until says "$rank" "is there" || ! kill -0 "${ranks[rank]}" 2>/dev/null; do sleep 0.05; done
  done
}

for rank in 0 1 2 3 4 5; do start $rank MULLIGAN_SECRET=word -- 5; done
finish
check "six ranks on three machines meet and finish" ended 0 0 0 0 0 0

for rank in 0 1 2 3 4 5; do start $rank -- 5; done
finish
check "without a secret they do not" ended 2 2 2 2 2 2
check "and say what is missing" says 3 "give all of them the same MULLIGAN_SECRET"

for rank in 0 1 2 3 4; do start $rank MULLIGAN_SECRET=word -- 5; done
start 5 MULLIGAN_SECRET=other -- 5
finish
check "another secret on one rank ends the run" ended 2 2 2 2 2 2
check "rank 0 names the rank" says 0 "rank 5 ("
check "the others know it, too" says 4 "has another secret than rank 0"

for rank in 0 1 2 3 4 5; do start $rank MULLIGAN_SECRET=word MULLIGAN_INTERFACE=eth0 -- 100000 2; done
all_there
check "rank 0 listens at the chosen interface alone" \
  test "$(ip netns exec node0 cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A" { print $2 }')" = "01004D0A:733C"
ip link set wire2 down
finish
check "a cut link ends the run on both sides of it" ended 5 5 5 5 5 5
check "one side has lost a rank behind it" grep -qE "^rank [45] \(.* was lost: it(s machine does not answer| said nothing for)" "$folder/rank0"
check "which all of that side know" says 3 "$(tail -n 1 "$folder/rank0")"
check "the other side has lost rank 0" grep -qE "^rank 0 \(.* was lost: it(s machine does not answer| said nothing for)" "$folder/rank5"
ip link set wire2 up

for rank in 0 1 2 3 4 5; do start $rank MULLIGAN_SECRET=word -- 100000; done
all_there
kill -TERM "${ranks[3]}"
finish
check "a signal to one rank stops all in good order" ended 4 4 4 4 4 4
check "and each says who was asked" says 0 "all stop, as rank 3 was asked to."

for rank in 0 1 2 3 4 5; do start $rank MULLIGAN_SECRET=word -- 100000; done
all_there
kill -TERM "${ranks[@]}"
finish
check "signals to all stop all in good order" ended 4 4 4 4 4 4

for rank in 0 1 2 3 4 5; do start $rank MULLIGAN_SECRET=word -- 100000; done
all_there
kill -KILL "${ranks[4]}"
finish
check "a killed rank ends the others" ended 5 5 5 5 137 5
check "which name it" says 1 "rank 4 ("
