# Minimal systems to try things in: a release's minbase and nothing else, in a folder, entered by chroot in namespaces of its
# own. Sourced by tests/fresh/run and tests/release/check; needs mmdebstrap, and root or user namespaces (as_root_here).
fresh_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
fresh_kept=${MULLIGAN_FRESH_ROOTS:-$(realpath "$fresh_here/../..")/build/fresh}

# as_root_here SCRIPT ARGUMENT...: goes on as root; where the caller is another user, as root of a user namespace. Returns
# where that is impossible.
as_root_here() {
  ((EUID == 0)) && return
  unshare --map-root-user --map-auto true 2>/dev/null && exec unshare --map-root-user --map-auto --mount "$@"
  fresh_refusal="needs root, or user namespaces with a range of users in /etc/subuid"
  return 1
}

# What apt fetches here, and how: from this machine's own settings, so that mirrors and proxies hold in the root, too.
sources_of() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -v release="$1" '$2 == release || index($2, release "-") == 1 { print "deb", $1, $2, $3 }' | sort -u
}
way_of_apt() { apt-config dump | grep -E '^Acquire::(http|https|ftp|Check-|Retries|ForceIPv|Languages)'; }

# make_root RELEASE FOLDER: the root of RELEASE in FOLDER, which is made anew. Fetched once and kept as an archive. Returns 1
# where it cannot be made, with the reason in fresh_refusal.
make_root() {
  local release=$1 folder=$2 archive=$fresh_kept/$1.tar log=$fresh_kept/$1.log
  mkdir -p "$fresh_kept"
  if [[ ! -e $archive ]]; then
    command -v mmdebstrap >/dev/null || { fresh_refusal="there is no mmdebstrap to make it; install mmdebstrap"; return 1; }
    way_of_apt >"$fresh_kept/apt.conf"
    local sources=()
    # Without sources of this machine mmdebstrap takes the distribution's own.
    if [[ $(sources_of "$release") ]]; then
      sources_of "$release" >"$fresh_kept/$release.list"
      sources=("$fresh_kept/$release.list")
    fi
    if ! mmdebstrap --mode=root --format=tar --variant=minbase --aptopt="$fresh_kept/apt.conf" "$release" "$archive.part" "${sources[@]}" \
      >"$log" 2>&1 </dev/null; then
      rm -f "$archive.part"
      # apt's reason stands below its "Err:".
      fresh_refusal="mmdebstrap: $(grep -m1 -A1 '^Err:' "$log" || tail -n 1 "$log")"
      return 1
    fi
    mv "$archive.part" "$archive"
  fi
  remove_root "$folder"
  mkdir -p "$folder"
  tar -C "$folder" -xf "$archive"
  cp /etc/resolv.conf /etc/hosts "$folder/etc/" 2>/dev/null || true
}

remove_root() { rm -rf --one-file-system "$1"; }

# inside ROOT COMMAND [NAME=VALUE]...: runs COMMAND of bash in ROOT, as root and with nothing of this machine's environment. Folders
# in the array fresh_mounts ("HERE:THERE") are visible there. The end of this process ends all that it started.
fresh_mounts=()
inside() {
  local root=$1 command=$2
  shift 2
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@" \
    unshare --mount --pid --fork --kill-child bash -c '
      set -e
      root=$1 command=$2
      shift 2
      mount -t proc proc "$root/proc"
      mount --rbind /dev "$root/dev"
      for pair; do
        mkdir -p "$root${pair#*:}"
        mount --bind "${pair%%:*}" "$root${pair#*:}"
      done
      exec chroot "$root" bash -c "cd /root; $command"' - "$root" "$command" "${fresh_mounts[@]}"
}
