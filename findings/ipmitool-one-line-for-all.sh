#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ipmitool 1.8.19, without -v: a wrong password, an unknown user and an address where nobody answers
# are one and the same line.
# Seen: Error: Unable to establish IPMI v2 / RMCP+ session
set -euo pipefail

folder=$(mktemp -d)
bmc=
trap '[ -z "$bmc" ] || kill "$bmc" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq download ipmitool=1.8.19-4+deb12u2 libfreeipmi17=1.6.10-1+b1 openipmi=2.0.33-1+b1 libopenipmi0=2.0.33-1+b1 libsnmp40=5.9.3+dfsg-2+deb12u1
for package in *.deb; do dpkg -x "$package" root; done
export LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu:$folder/root/usr/lib
ipmitool=$folder/root/usr/bin/ipmitool
"$ipmitool" -V

# Two ports: of a BMC, and one where nobody answers.
read -r port silent < <(python3 -c '
import socket
s = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(2)]
for one in s: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in s))')
cat >lan.conf <<END
name "machine"
set_working_mc 0x20
 startlan 1
  addr 127.0.0.1 $port
  priv_limit admin
  allowed_auths_admin md5
  guid 00112233445566778899aabbccddeeff
 endlan
 user 2 true "operator" "example" admin 10 md5
END
printf '%s\n' 'mc_setbmc 0x20' 'mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02' 'mc_enable 0x20' >sim.emu
"$folder/root/usr/bin/ipmi_sim" -c lan.conf -f sim.emu -s "$folder" -n >sim.log 2>&1 &
bmc=$!

# status PORT USER PASSWORD
status() { "$ipmitool" -I lanplus -C 3 -H 127.0.0.1 -p "$1" -U "$2" -P "$3" chassis power status; }
for _ in $(seq 5); do # until the BMC has started
  if status "$port" operator example 2>/dev/null; then break; fi
  kill -0 "$bmc"
done
status "$port" operator example
line='Error: Unable to establish IPMI v2 / RMCP+ session'
for case in "$port operator wrong" "$port nobody example" "$silent operator example"; do
  # shellcheck disable=SC2086 # three words
  if printed=$(status $case 2>&1); then echo "$case: it worked"; exit 1; fi
  echo "${case#* }: $printed"
  [ "$printed" = "$line" ]
done
