#!/usr/bin/env bash
# The command prepare beside what strangers have on their disks.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

# A pipe or a device in place of a file: refused at once, never read to an end that does not come.
mkdir pipe device
mkfifo pipe/manifest.json
ln -s /dev/zero device/manifest.json
check_refused "prepare --check: a pipe as manifest" 3 "regular file" prepare --check pipe
check_refused "prepare --check: a device as manifest" 3 "regular file" prepare --check device
mkfifo settings.toml
check_refused "a pipe as configuration" 2 "settings.toml" config check settings.toml
ln -s loop.toml loop.toml
check_refused "links in a circle as configuration" 2 "loop.toml" config check loop.toml
truncate -s 300G huge.toml
check_refused "a configuration of 300 GiB" 2 "more than" config check huge.toml
finish
