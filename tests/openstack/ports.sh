# SPDX-License-Identifier: Apache-2.0
# A block of ports for each lab. The lab's services inherit a lock on their
# block, so it is free for others as soon as the last of them has ended.

BLOCK=20

# claim_ports keeps the block of a running lab and finds one for any other. It
# sets BASE.
claim_ports() {
  local base
  if [ -e "$LAB/base" ] && any_alive; then
    BASE=$(<"$LAB/base")
    return
  fi
  for ((base = LAB_PORT; base <= 65535 - BLOCK; base += BLOCK)); do
    if claim "$base"; then
      [ "$base" = "$LAB_PORT" ] || echo "lab: ports from $LAB_PORT are taken; using those from $base" >&2
      BASE=$base
      echo "$base" >"$LAB/base"
      return
    fi
  done
  die "no block of $BLOCK ports is free from $LAB_PORT on; choose another start with LAB_PORT=..."
}

# claim BASE: true if this lab now has the block and no process listens in it
claim() {
  local port lock=${TMPDIR:-/tmp}/almanac-lab-$1.ports
  { exec 9>>"$lock"; } 2>/dev/null || return 1 # it belongs to another user
  flock -n 9 || return 1
  for ((port = $1; port < $1 + BLOCK; port++)); do
    if listens "$port"; then return 1; fi
  done
}

# listens PORT
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# publish PART PORT writes the port of a part that answers; tests read it.
publish() { echo "$2" >"$LAB/ports/$1"; }

# await PART... waits until the parts are published. It exits if a part has
# failed.
await() {
  local part
  for part in "$@"; do
    until [ -e "$LAB/ports/$part" ]; do
      [ ! -e "$LAB/run/failed" ] || exit 1
      sleep 0.1
    done
  done
}
