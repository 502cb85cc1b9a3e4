# SPDX-License-Identifier: Apache-2.0
# The releases of OpenStack that the lab can start. Each comes from a suite of
# Debian. If this machine is not of that suite, the lab keeps a root of the suite
# (a folder with a whole Debian) and runs in it. Processes and loopback are shared
# with the machine; the folders of shared_folders are the same in both.

declare -A SUITES=([zed]=bookworm [epoxy]=trixie [newest]=sid)
LAB_ROOTS=${LAB_ROOTS:-/var/cache/almanac-lab}

# own_release prints the release that the packages of this Debian are of; nothing
# if there is none.
own_release() {
  local release codename
  if [ -e /etc/almanac-lab-release ]; then cat /etc/almanac-lab-release; return; fi
  codename=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}")
  for release in "${!SUITES[@]}"; do
    if [ "${SUITES[$release]}" = "$codename" ]; then echo "$release"; fi
  done
}

# choose_release sets RELEASE: that of the lab if it exists, else the one that is
# asked for, else that of this machine.
choose_release() {
  local kept='' own
  own=$(own_release)
  # `run` without a lab makes one of its own
  if [ -e "$LAB/release" ] && { [ "$verb" != run ] || [ "$given" ]; }; then kept=$(<"$LAB/release"); fi
  [ -z "$kept" ] || [ "${RELEASE:-$kept}" = "$kept" ] ||
    die "the lab in $LAB is of the release $kept; for $RELEASE: lab down --wipe, or another LAB"
  RELEASE=${kept:-${RELEASE:-${own:-zed}}}
  [ "${SUITES[$RELEASE]:-}" ] || die "RELEASE is zed, epoxy or newest, not $RELEASE"
  export RELEASE
  ROOT=''
  [ "$RELEASE" = "$own" ] || ROOT=$LAB_ROOTS/$RELEASE
}

# in_root COMMAND... runs the command in the root of the release, in a mount
# namespace of its own: the mounts end with the last process that uses them.
in_root() {
  [ "$(id -u)" = 0 ] || die "only root can enter the root of $RELEASE in $ROOT"
  export LAB ROOT FOLDERS verb given
  FOLDERS=$(shared_folders)
  exec unshare --mount --propagation private bash -euc '
    for folder in /proc /sys /dev; do mount --rbind "$folder" "$ROOT$folder"; done
    # oslo counts the queues of a host there, by the names of the services, which are those of other labs too
    if [ "$verb" = run ] && [ -z "$given" ]; then
      mount -t tmpfs -o mode=1777 almanac-lab "$ROOT/dev/shm" # the temporary lab has no folder yet
    else
      mkdir -p -m 1777 "$LAB/shm"
      mount --bind "$LAB/shm" "$ROOT/dev/shm"
    fi
    while read -r folder; do
      mkdir -p "$ROOT$folder"
      mount --bind "$folder" "$ROOT$folder"
    done <<<"$FOLDERS"
    cp /etc/hosts /etc/resolv.conf "$ROOT/etc/"
    in=$PWD
    exec chroot "$ROOT" bash -c '\''cd "$1"; shift; exec "$@"'\'' - "$in" "$@"' - "$@"
}

# shared_folders prints the folders that a root shares with the machine: the
# lab's, the source, Go and its caches, and what the tests are given.
shared_folders() {
  local folder
  {
    echo "${TMPDIR:-/tmp}"
    mkdir -p "$LAB" && echo "$LAB"
    (cd "$HERE/../.." && pwd)
    pwd
    PATH=$callers_path go env GOROOT GOMODCACHE GOCACHE 2>/dev/null || true
    echo "${ALMANAC_DATA:-}"
  } | sort -u | while read -r folder; do
    if [ -d "$folder" ] && [ "$folder" != / ]; then echo "$folder"; fi
  done
}

# bootstrap SUITE FOLDER LOG [PACKAGE...] makes a root of a suite with the fewest packages and those
# named: of Debian from the archive of this machine's apt, of Ubuntu from its own.
bootstrap() {
  local suite=$1 folder=$2 log=$3 archive script= making=$2.making include=ca-certificates
  shift 3
  [ "$(id -u)" = 0 ] || die "only root can make the root of $suite in $folder"
  command -v debootstrap >/dev/null || apt-get install -y -qq --no-install-recommends debootstrap >/dev/null 2>&1 ||
    die "debootstrap is missing; as root: apt-get install debootstrap"
  case "$suite" in
  jammy | noble)
    archive=http://archive.ubuntu.com/ubuntu
    script=/usr/share/debootstrap/scripts/gutsy # that of each Ubuntu; debootstrap of Debian 12 has no name after jammy
    ;;
  *)
    archive=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | sort | uniq -c | sort -rn | awk '{print $2; exit}')
    [ "$archive" ] || die "apt names no archive of Debian: see /etc/apt/sources.list"
    ;;
  esac
  echo "lab: making a root of the suite $suite in $folder" >&2
  rm -rf --one-file-system "$making"
  mkdir -p "$(dirname "$folder")"
  for package; do include+=,$package; done
  debootstrap --variant=minbase --include="$include" "$suite" "$making" "$archive" $script >"$log" 2>&1 || die "debootstrap failed; its log is $log"
  # a mirror may be older than the dates that it is signed with allow
  printf 'Acquire::Check-Valid-Until "false";\nAcquire::Check-Date "false";\n' >"$making/etc/apt/apt.conf.d/99almanac-lab"
  # a root has no directory for the sockets of services
  mkdir -p "$making/run/lock"
  rm -rf --one-file-system "$folder"
  mv "$making" "$folder"
}

# make_root makes the root of the release unless it is there.
make_root() {
  [ ! -e "$ROOT/etc/almanac-lab-release" ] || return 0
  bootstrap "${SUITES[$RELEASE]}" "$ROOT" "$LAB_ROOTS/$RELEASE.log" procps iproute2 make git
  echo "$RELEASE" >"$ROOT/etc/almanac-lab-release"
}

# refresh_root brings the packages of the root up to date.
refresh_root() {
  [ "$ROOT" ] || die "$RELEASE is this machine's own release; as root: apt-get upgrade"
  make_root
  (in_root env PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -c \
    'apt-get -qq update && apt-get -y -qq --no-install-recommends dist-upgrade && apt-get clean')
}

# remove_root deletes the root.
remove_root() {
  local in_use
  [ "$ROOT" ] || die "$RELEASE is this machine's own release and has no root"
  # find fails where it may not read the root of a process, and lists the others all the same.
  in_use=$({ find /proc/[0-9]*/root -maxdepth 0 -lname "$ROOT" 2>/dev/null || true; } | cut -d/ -f3 | paste -sd ' ')
  [ -z "$in_use" ] || die "processes run in $ROOT: $in_use; first: lab down"
  rm -rf --one-file-system "$ROOT"
}
