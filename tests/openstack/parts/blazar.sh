# SPDX-License-Identifier: Apache-2.0
# OpenStack Blazar. It is in the catalog as `reservation`; its pool of hosts is the
# aggregate freepool, which is empty. No release before Epoxy has packages.

blazar_packages="blazar-api blazar-manager python3-blazarclient python3-blazarnova python3-pymysql uwsgi-core uwsgi-plugin-python3"
blazar_needs="mariadb rabbitmq keystone nova computes"

blazar_port() { echo $((BASE + 12)); }

blazar_up() {
  [ "$RELEASE" != zed ] || die "Debian 12 has no package of Blazar; RELEASE is epoxy or newest"
  blazar_settings
  await mariadb
  [ -e "$LAB/blazar/schema" ] || blazar_schema
  await rabbitmq keystone
  quietly blazar-identity /usr/bin/python3 -B "$HERE/identity.py" "$(keystone_url)" "$PASSWORD" \
    "reservation=http://127.0.0.1:$(blazar_port)/v1"
  await nova
  quietly blazar-freepool cloud freepool
  blazar_start blazar-manager
  blazar_start blazar-api
  publish blazar "$(blazar_port)"
}

# blazar_start NAME
blazar_start() {
  local script
  if [ "$1" = blazar-api ] && script=$(module blazar/wsgi/api.py); then
    start_wsgi blazar-api "$(blazar_port)" 2 "$script" OS_BLAZAR_CONFIG_DIR="$LAB/blazar"
  else
    start "$1" "$HERE/program" "blazar.cmd.${1#blazar-}" --config-file "$LAB/blazar/blazar.conf"
  fi
  [ "$1" != blazar-api ] || wait_for "$1" listens "$(blazar_port)"
}

blazar_schema() {
  mariadb_new blazar utf8mb4
  quietly blazar-db-manage blazar-db-manage --config-file "$LAB/blazar/blazar.conf" upgrade head
  touch "$LAB/blazar/schema"
}

blazar_settings() {
  mkdir -p "$LAB/blazar"
  written "$LAB/blazar/blazar.conf" <<E
[DEFAULT]
host = 127.0.0.1
port = $(blazar_port)
use_stderr = true
transport_url = $(rabbitmq_url)
os_auth_host = 127.0.0.1
os_auth_port = $(keystone_port)
os_admin_username = blazar
os_admin_password = $PASSWORD
os_admin_project_name = service
os_region_name = RegionOne
[database]
connection = $(mariadb_url blazar utf8mb4)
[manager]
plugins = physical.host.plugin,virtual.instance.plugin,flavor.instance.plugin
[oslo_concurrency]
lock_path = $LAB/blazar/locks
[oslo_messaging_notifications]
driver = messagingv2
$(keystone_authtoken blazar)
$(queue_options)
E
}
