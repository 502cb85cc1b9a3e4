#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Apache 2.4.71: a balancer with lbmethod=bybusyness that stands outside of the VirtualHost that uses it
# needs the module of byrequests too, without which Apache does not start. Inside, it does not.
# "apache2 -t" accepts both.
# Seen: AH02432: Cannot find LB Method: byrequests
set -euo pipefail

folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq download apache2-bin=2.4.71-1~deb12u1 libapr1=1.7.2-3+deb12u1 libaprutil1=1.6.3-1+deb12u1
for package in *.deb; do dpkg -x "$package" root; done
export LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu
apache=$folder/root/usr/sbin/apache2
"$apache" -v | head -1

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
balancer='<Proxy balancer://pool>
BalancerMember http://127.0.0.1:9
ProxySet lbmethod=bybusyness
</Proxy>'

# configuration OUTSIDE INSIDE
configuration() {
  printf '%s\n' "ServerName localhost" "Listen 127.0.0.1:$port" "PidFile $folder/pid" "DefaultRuntimeDir $folder" "ErrorLog $folder/log" "User www-data" "Group www-data"
  for name in mpm_event authz_core slotmem_shm proxy lbmethod_bybusyness proxy_balancer proxy_http; do
    echo "LoadModule ${name}_module $folder/root/usr/lib/apache2/modules/mod_$name.so"
  done
  printf '%s\n' "$1" "<VirtualHost *:$port>" "$2" "ProxyPass / balancer://pool/" "</VirtualHost>"
}
configuration "$balancer" '' >outside.conf
configuration '' "$balancer" >inside.conf
for name in outside inside; do "$apache" -t -d "$folder" -f "$folder/$name.conf"; done

: >log
if timeout 60 "$apache" -X -d "$folder" -f "$folder/outside.conf"; then echo "outside: it ran"; exit 1; fi
cat log
grep -q 'AH02432: Cannot find LB Method: byrequests' log

: >log
"$apache" -X -d "$folder" -f "$folder/inside.conf" &
server=$!
for _ in $(seq 100); do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
  kill -0 "$server"
  sleep 0.1
done
sleep 1 # Apache listens before it reads its balancers
kill -0 "$server"
if grep AH02432 log; then exit 1; fi
echo "inside: it serves"
