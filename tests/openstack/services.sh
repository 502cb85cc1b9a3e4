# SPDX-License-Identifier: Apache-2.0
# Processes of the lab. Each has a session of its own and a pid file.

# written FILE replaces the file with its input at once: a service that starts
# meanwhile, because `up` starts services side by side, reads either the old file
# or the new one.
written() {
  cat >"$1.new"
  mv "$1.new" "$1"
}

# options VARIABLE prints its SECTION.OPTION=VALUE... in the form of a
# configuration file.
options() {
  local one
  for one in ${!1:-}; do
    [[ $one =~ ^[A-Za-z_]+\.[a-z_]+=.*$ ]] || die "$1 has SECTION.OPTION=VALUE, not $one"
    printf '[%s]\n%s\n' "${one%%.*}" "${one#*.}"
  done
}

# All processes of a lab have its folder in their environment, under a name that
# no test uses.
mark() {
  export ALMANAC_LAB_SERVICE=$LAB
  export SPT_NOENV=1 # else setproctitle overwrites the environment
}

# alive NAME
alive() {
  [ -s "$LAB/run/$1.pid" ] && marked "$(<"$LAB/run/$1.pid")"
}

# marked PID: true if the process is the lab's, and not a later one with the same
# number
marked() { grep -qzxF "ALMANAC_LAB_SERVICE=$LAB" "/proc/$1/environ" 2>/dev/null; }

any_alive() {
  local file
  for file in "$LAB"/run/*.pid; do
    if alive "$(basename "$file" .pid)"; then return 0; fi
  done
  return 1
}

away() { [ -e "$LAB/run/$1.away" ]; }

# start NAME COMMAND... starts the service unless it runs or is away.
start() {
  local name=$1
  shift
  if alive "$name" || away "$name"; then return 0; fi
  setsid bash -c '[ -z "$LAB_PRIORITY" ] || echo "$LAB_PRIORITY" >/proc/self/autogroup; exec "$@"' - "$@" >>"$LAB/log/$name.log" 2>&1 </dev/null 8>&- &
  echo $! >"$LAB/run/$name.pid"
}

# PATIENCE is how long a service may take to answer, in seconds. It is many times
# what it takes, since other work may have most of the machine; a service that has
# ended is not waited for.
PATIENCE=900

# wait_for NAME COMMAND... waits until the command succeeds. It fails early if the
# service NAME has ended.
wait_for() {
  local name=$1 end=$((SECONDS + PATIENCE))
  shift
  until "$@" >/dev/null 2>&1; do
    if ! kill -0 "$(<"$LAB/run/$name.pid")" 2>/dev/null; then die "$name has stopped: $(tail -1 "$LAB/log/$name.log")"; fi
    if [ $SECONDS -ge $end ]; then die "$name does not answer; its log is $LAB/log/$name.log"; fi
    sleep 0.1
  done
}

# module PATH prints the file of Debian's Python packages, if it exists.
module() { ls "/usr/lib/python3/dist-packages/$1" 2>/dev/null; }

# start_wsgi NAME PORT PROCESSES SCRIPT VARIABLE=VALUE... starts a WSGI application
# unless it runs. http-socket closes every connection; the header keeps clients from
# using a closed one again.
start_wsgi() {
  local name=$1 port=$2 processes=$3 script=$4
  shift 4
  start "$name" env "$@" uwsgi --plugins python3 --master --lazy-apps --need-app --die-on-term --enable-threads \
    --single-interpreter --buffer-size 65535 --disable-logging --add-header "Connection: close" \
    --http-socket "127.0.0.1:$port" --processes "$processes" --wsgi-file "$script"
}

# answers PORT: true if HTTP is answered there
answers() { listens "$1" && curl -sf --max-time 60 "http://127.0.0.1:$1/"; }

# stop NAME SECONDS sends SIGTERM, and after that time SIGKILL to the service and
# its children.
stop() {
  local pid end=$((SECONDS + $2))
  alive "$1" || return 0
  pid=$(<"$LAB/run/$1.pid")
  [ "$2" = 0 ] || kill -TERM "$pid" 2>/dev/null || true
  while [ $SECONDS -lt $end ] && alive "$1"; do sleep 0.1; done
  kill -KILL -- "-$pid" 2>/dev/null || true
  while alive "$1"; do sleep 0.1; done
}

# stop_all SECONDS sends SIGTERM to the services, and after that time SIGKILL to
# everything that is left of the lab.
stop_all() {
  local file name end=$((SECONDS + $1)) rounds
  for file in "$LAB"/run/*.pid; do
    name=$(basename "$file" .pid)
    # the broker still deregisters from epmd
    if [ "$name" != epmd ] && alive "$name"; then kill -TERM "$(<"$file")"; fi
  done
  for file in "$LAB"/run/*.pid; do
    name=$(basename "$file" .pid)
    while [ "$name" != epmd ] && [ $SECONDS -lt $end ] && alive "$name"; do sleep 0.1; done
  done
  for ((rounds = 0; rounds < 50; rounds++)); do
    kill_marked || break
    sleep 0.1
  done
  rm -f "$LAB"/run/*.pid "$LAB"/run/*.away
}

# kill_marked kills all processes of the lab; false if there are none.
kill_marked() {
  local environment left
  left=$(grep -lzxF "ALMANAC_LAB_SERVICE=$LAB" /proc/[0-9]*/environ 2>/dev/null) || true
  [ "$left" ] || return 1
  for environment in $left; do
    environment=${environment%/environ}
    kill -KILL "${environment#/proc/}" 2>/dev/null || true
  done
}

# quietly NAME COMMAND... writes the output of a command to a log and shows the
# end of the log if the command fails.
quietly() {
  local log=$LAB/log/$1.log
  shift
  "$@" >>"$log" 2>&1 </dev/null || die "$1 failed: $(tail -3 "$log")"
}
