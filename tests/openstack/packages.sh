# SPDX-License-Identifier: Apache-2.0
# Debian packages, installed when they are missing.

# install_packages NAME... installs the missing packages without starting their
# services on the machine.
install_packages() {
  local missing policy=/usr/sbin/policy-rc.d made=
  missing=$(missing_packages "$@")
  [ "$missing" ] || return 0
  command -v apt-get >/dev/null || die "these Debian 12 packages are missing:" $missing
  [ "$(id -u)" = 0 ] || die "missing packages; as root: apt-get install --no-install-recommends" $missing
  echo "lab: installing" $missing >&2
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
    made=1
  fi
  apt_install $missing || apt_install --update $missing || {
    [ -z "$made" ] || rm -f $policy
    tail -5 "$LAB/log/apt.log" >&2
    die "apt-get install failed; its log is $LAB/log/apt.log"
  }
  [ -z "$made" ] || rm -f $policy
}

# apt_install [--update] NAME...
apt_install() {
  local apt=(timeout 1200 apt-get -y -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
  if [ "$1" = --update ]; then
    shift
    "${apt[@]}" update >>"$LAB/log/apt.log" 2>&1 || return
  fi
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" install --no-install-recommends -o Dpkg::Use-Pty=0 \
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" \
    >>"$LAB/log/apt.log" 2>&1 </dev/null
}

# missing_packages NAME...
missing_packages() {
  local name installed=
  if command -v dpkg-query >/dev/null; then
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  fi
  for name in "$@"; do
    grep -qxF "installed $name" <<<"$installed" || echo "$name"
  done
}
