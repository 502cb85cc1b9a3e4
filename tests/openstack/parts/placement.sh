# SPDX-License-Identifier: Apache-2.0
# Placement under uwsgi.

placement_packages="curl python3-osc-placement python3-placement python3-pymysql uwsgi-core uwsgi-plugin-python3"
placement_needs="mariadb keystone"

placement_port() { echo $((BASE + 6)); }

placement_up() {
  placement_settings
  await mariadb
  [ -e "$LAB/placement/schema" ] || placement_schema
  placement_start
  publish placement "$(placement_port)"
}

placement_start() {
  start_wsgi placement "$(placement_port)" 2 "$(module placement/wsgi/api.py || echo /usr/bin/placement-api)" OS_PLACEMENT_CONFIG_DIR="$LAB/placement"
  wait_for placement answers "$(placement_port)"
}

placement_schema() {
  mariadb_new placement
  quietly placement-manage placement-manage --config-file "$LAB/placement/placement.conf" db sync
  touch "$LAB/placement/schema"
}

placement_settings() {
  mkdir -p "$LAB/placement"
  written "$LAB/placement/placement.conf" <<E
[DEFAULT]
use_stderr = true
[placement_database]
connection = $(mariadb_url placement)
[placement]
# With more retries, Placement sometimes grants more than there is when several
# clients claim the last room of a host at the same moment: it retries inside the
# transaction, which still has the usages from before the conflict.
allocation_conflict_retry_count = 1
[api]
auth_strategy = keystone
$(keystone_authtoken placement)
E
}
