# SPDX-License-Identifier: Apache-2.0
# A Neutron without networks: users create servers with `--nic none`.

neutron_packages="curl"
neutron_needs=""

neutron_port() { echo $((BASE + 8)); }

neutron_up() {
  neutron_start
  publish neutron "$(neutron_port)"
}

neutron_start() {
  start neutron /usr/bin/python3 "$HERE/neutron.py" "$(neutron_port)"
  wait_for neutron answers "$(neutron_port)"
}
