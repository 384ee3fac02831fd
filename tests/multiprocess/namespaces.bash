# Machines that are network namespaces, for the scripts in this folder. Source before anything else, then enter_namespaces.

source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/usual_signals.bash"

# enter_namespaces WHAT: goes on in namespaces of this script's own, with a bridge to plug machines into; where these are not to be had the
# script ends as skipped.
enter_namespaces() {
  local refused
  if [[ ${MULLIGAN_IN_NAMESPACES:-} != "$0" ]]; then
    if ! unshare -rnm true 2>/dev/null || ! command -v ip >/dev/null; then
      echo "skipped - $1 (network namespaces are not to be had here)"
      echo "ok - nothing else was to be looked at"
      exit
    fi
    MULLIGAN_IN_NAMESPACES=$0 exec unshare -rnm "$0"
  fi
  if ! refused=$({ mount -t tmpfs tmpfs /run && ip link set lo up && ip link add switch type bridge && ip link set switch up; } 2>&1); then
    echo "skipped - $1 ($(head -n 1 <<<"$refused"))"
    echo "ok - nothing else was to be looked at"
    exit
  fi
}

# add_nodes COUNT: machines node0, node1, ... with the addresses 10.77.0.1, 10.77.0.2, ...; node N's cable is the device wireN.
add_nodes() {
  local node
  for ((node = 0; node < $1; ++node)); do
    ip netns add "node$node" && ip link add "wire$node" type veth peer name eth0 netns "node$node" || exit 1
    ip link set "wire$node" master switch up
    ip -n "node$node" address add "10.77.0.$((node + 1))/24" dev eth0
    ip -n "node$node" link set eth0 up
    ip -n "node$node" link set lo up
  done
}
