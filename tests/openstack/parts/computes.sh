# SPDX-License-Identifier: Apache-2.0
# Hosts cmp-001, cmp-002, ... with Nova's fake driver, several in a process.
# $LAB/computes has a line for each process: its name, the numbers of its first and
# last host, and their cell. The last host has a process of its own: tests kill it.
#
# $LAB/almanac.conf configures an almanacd that is started by hand in this lab.

computes_packages="python3-nova"
computes_needs="nova"

computes_up() {
  local name rest
  computes_layout
  almanac_conf
  await rabbitmq keystone placement nova
  while read -r name rest; do computes_start "$name"; done <"$LAB/computes"
  quietly computes cloud computes "$(computes_number)"
}

# computes_start NAME
computes_start() {
  local first last cell files=(--config-file "$LAB/nova/nova.conf")
  read -r first last cell < <(sed -n "s/^$1 //p" "$LAB/computes")
  if nova_split; then files+=(--config-file "$LAB/nova/$cell.conf"); fi
  alive "$1" || computes_down "$1"
  start "$1" "$HERE/computes.py" "$first" "$last" "${files[@]}"
}

# computes_down NAME forces the hosts of a process that does not run down in Nova, as
# tools do that evacuate failed hosts: nobody waits for service_down_time. The next
# process of the hosts takes it back. Nova's API may be stopped too, so this writes
# what the API would.
computes_down() {
  local first last cell
  read -r first last cell < <(sed -n "s/^$1 //p" "$LAB/computes")
  mariadb_sql "UPDATE nova_$cell.services SET forced_down = 1
    WHERE \`binary\` = 'nova-compute' AND CAST(SUBSTR(host, 5) AS UNSIGNED) BETWEEN $first AND $last"
}

# computes_number prints the number of hosts of the lab, or of a new lab COMPUTES,
# by default 8.
computes_number() {
  if [ -e "$LAB/computes" ]; then awk 'END { print $3 }' "$LAB/computes"; else echo "${COMPUTES:-8}"; fi
}

computes_layout() {
  local number per first last=0 process=0 cell=1 half
  number=$(computes_number)
  [ "${COMPUTES:-$number}" = "$number" ] ||
    die "this lab has $number computes; for another number: lab down --wipe, or another LAB"
  [[ $number =~ ^([1-9][0-9]{0,2}|1000)$ ]] || die "COMPUTES is a number from 1 to 1000, not $number"
  [ "$number" -ge "$(nova_cells_number)" ] || die "each cell needs a host: COMPUTES is $number, CELLS is $(nova_cells_number)"
  [ ! -e "$LAB/computes" ] || return 0
  per=${COMPUTES_PER_PROCESS:-$((number <= 50 ? 7 : (number + 5) / 7))}
  half=$number
  if nova_split; then half=$((number / 2)); fi
  while [ "$last" -lt "$number" ]; do
    [ "$last" -lt "$half" ] || cell=2
    first=$((last + 1)) last=$((last + per))
    if [ $first -le "$half" ] && [ $last -gt "$half" ]; then last=$half; fi
    if [ $first -eq "$number" ]; then last=$number; elif [ $last -ge "$number" ]; then last=$((number - 1)); fi
    echo "computes-$((++process)) $first $last cell$cell"
  done >"$LAB/computes-making"
  mv "$LAB/computes-making" "$LAB/computes"
}

almanac_conf() {
  written "$LAB/almanac.conf" <<E
[DEFAULT]
transport_url = $(rabbitmq_url)
[api]
auth_strategy = keystone
[database]
connection = sqlite:///$LAB/almanac.db
[inventory]
source = openstack
[keystone_authtoken]
auth_url = $(keystone_url)
username = almanac
password = $PASSWORD
project_name = service
[nova]
notifications = true
[reservation]
lead_time = 1m
$(queue_options)
E
}
