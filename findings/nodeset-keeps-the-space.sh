#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ClusterShell 1.9.1: a space within one argument of nodeset does not separate nodes. It belongs to their
# names, although the output separates nodes by spaces too.
# Seen: nodeset -e 'n[1-2] m1' prints "n1 m1 n2 m1", and nodeset -c counts 2
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq download clustershell=1.9.1-1 python3-clustershell=1.9.1-1 python3-yaml=6.0-3+b2
for package in *.deb; do dpkg -x "$package" root; done
export PYTHONPATH=$folder/root/usr/lib/python3/dist-packages
nodeset() { python3 "$folder/root/usr/bin/nodeset" "$@"; }
nodeset --version

# expect OUTPUT ARGUMENT...
expect() {
  local expected=$1 printed
  shift
  printed=$(nodeset "$@")
  echo "nodeset $*: $printed"
  [ "$printed" = "$expected" ]
}
expect 3 -c 'n[1-2]' m1
expect 3 -c 'n[1-2],m1'
expect 2 -c 'n[1-2] m1'
expect 'n1 m1 n2 m1' -e 'n[1-2] m1'
expect $'n1 m1\nn2 m1' -S '\n' -e 'n[1-2] m1'
