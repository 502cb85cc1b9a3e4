# SPDX-License-Identifier: Apache-2.0
# Glance with the image `tiny`; images are files in $LAB/glance.

glance_packages="curl python3-glance python3-pymysql"
glance_needs="mariadb keystone"

glance_port() { echo $((BASE + 7)); }

glance_up() {
  glance_settings
  await mariadb
  [ -e "$LAB/glance/schema" ] || glance_schema
  glance_start
  await keystone
  quietly glance-image cloud image
  publish glance "$(glance_port)"
}

glance_start() {
  local script
  if script=$(module glance/wsgi/api.py); then
    start_wsgi glance "$(glance_port)" 1 "$script" OS_GLANCE_CONFIG_DIR="$LAB/glance"
  else
    start glance "$HERE/program" glance.cmd.api --config-file "$LAB/glance/glance-api.conf"
  fi
  wait_for glance answers "$(glance_port)"
}

glance_schema() {
  mariadb_new glance
  quietly glance-manage "$HERE/program" glance.cmd.manage --config-file "$LAB/glance/glance-api.conf" db_sync
  touch "$LAB/glance/schema"
}

glance_settings() {
  mkdir -p "$LAB"/glance/{images,tasks,staging}
  written "$LAB/glance/glance-api.conf" <<E
[DEFAULT]
use_stderr = true
bind_host = 127.0.0.1
bind_port = $(glance_port)
workers = 0
enabled_backends = files:file
property_protection_file = $HERE/../../docs/examples/ops/glance-property-protections.conf
property_protection_rule_format = roles
[database]
connection = $(mariadb_url glance)
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = $LAB/glance/images
[os_glance_tasks_store]
filesystem_store_datadir = $LAB/glance/tasks
[os_glance_staging_store]
filesystem_store_datadir = $LAB/glance/staging
[paste_deploy]
flavor = keystone
config_file = $HERE/glance-paste.ini
$(keystone_authtoken glance)
E
}
