#!/usr/bin/env bash
# Whatever kills mulligan launch, no process that its ranks started outlives it: children, grandchildren, those that left
# their group and session, those whose parent has ended.
source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/cli_checks.bash"

# Every process of the tree has this word in its environment.
export ORPHAN_MARK=orphan_mark_$$_$RANDOM
cat >breed.sh <<'SH'
#!/usr/bin/env bash
sleep 300 &
setsid sleep 301 &
bash -c 'setsid sleep 302 & setsid bash -c "sleep 303 & sleep 304" & disown -a' # orphans from the start
touch ready_$RANK
[[ -z $ENDS ]] || exit $ENDS
wait
SH
chmod +x breed.sh
# marked: the processes with the mark that live. A shell's own environment is the one it was started with, so this script has none.
marked() {
  env -u ORPHAN_MARK grep -lsz "^ORPHAN_MARK=$ORPHAN_MARK$" /proc/[0-9]*/environ | sed 's/[^0-9]//g'
}
# The launcher's two processes, and of each rank: it, a sleep, one in a session of its own, three orphans.
is_whole() { (($(marked | wc -l) >= 14)); }
begin() {
  rm -f ready_*
  "$mulligan" launch --nproc-per-node 2 "$@" --log-dir logs -- ./breed.sh >orphans.out 2>orphans.err &
  launcher=$!
  wait_until test -e ready_0 -a -e ready_1
  [[ -n $ENDS ]] || wait_until is_whole
}
is_gone() { [[ -z $(marked) ]]; }
none_left() { wait_until is_gone && pass "$1: no process is left"; }

export ENDS=
begin
check "a launched tree has many processes" is_whole
kill -KILL $launcher
wait $launcher 2>/dev/null
none_left "SIGKILL of the launcher"
begin
supervisor=$(pgrep -P $launcher)
kill -KILL "$supervisor"
check_code "SIGKILL of its second process: exit code" 1 wait $launcher
check_contains "SIGKILL of its second process: said" "was killed; all ranks were ended" "$(cat orphans.err)"
none_left "SIGKILL of its second process"
begin
kill -TERM $launcher
kill -INT $launcher
wait $launcher
none_left "two signals"
ENDS=0
begin
check_code "ranks that leave processes behind: exit code" 0 wait $launcher
none_left "ranks that leave processes behind"
ENDS=1
begin --max-restarts 1
check_code "ranks that fail and leave processes behind: exit code" 1 wait $launcher
none_left "ranks that fail and leave processes behind"
for ((number = 1; number <= $(amount 5 100); ++number)); do
  ENDS=
  "$mulligan" launch --nproc-per-node 2 --log-dir logs -- ./breed.sh >orphans.out 2>orphans.err &
  launcher=$!
  sleep "0.$(printf %03d $((RANDOM % 200)))"
  kill -KILL $launcher
  wait $launcher 2>/dev/null
done
none_left "SIGKILL at random moments of the start"
