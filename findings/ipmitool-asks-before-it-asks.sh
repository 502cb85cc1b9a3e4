#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ipmitool 1.8.19 without -C asks a BMC for its cipher suites before each command. The BMC of OpenIPMI
# 2.0.33 serves the command and not that question, so that each command takes ten seconds longer.
# Seen: Unable to Get Channel Cipher Suites; 10.2 s without -C, 0.1 s with -C 3
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

port=$(python3 -c 'import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
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

# status OPTION...
status() { "$ipmitool" -I lanplus -H 127.0.0.1 -p "$port" -U operator -P example "$@" chassis power status 2>&1; }
for _ in $(seq 5); do # until the BMC has started
  if status -C 3 >/dev/null; then break; fi
  kill -0 "$bmc"
done

# timed OPTION... prints the output and sets took, in milliseconds.
timed() {
  local begun
  begun=$(date +%s%3N)
  printed=$(status "$@")
  took=$(($(date +%s%3N) - begun))
  printf '%s ms with "%s": %s\n' "$took" "$*" "$printed"
}
timed -C 3
[ "$printed" = 'Chassis Power is off' ]
with=$took
timed
[ "$printed" = $'Unable to Get Channel Cipher Suites\nChassis Power is off' ]
[ $((took - with)) -ge 9000 ]
