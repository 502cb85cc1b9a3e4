# SPDX-License-Identifier: Apache-2.0
# Ironic: its API and conductor in one process, with a node for each of the first 16
# computes. The nodes have the names of the computes and are available and on. Their
# hardware is fake; a test can set a node's power interface to ipmitool.
#
# IRONIC_OPTIONS has the form of NOVA_OPTIONS; each start of the service reads it.

ironic_packages="curl ipmitool python3-ironic python3-ironicclient python3-pymysql"
ironic_needs="mariadb rabbitmq keystone"

ironic_port() { echo $((BASE + 10)); }

ironic_up() {
  ironic_settings
  await mariadb
  [ -e "$LAB/ironic/schema" ] || ironic_schema
  await rabbitmq keystone
  ironic_start
  quietly ironic-nodes cloud nodes "$(computes_number)"
  publish ironic "$(ironic_port)"
}

ironic_start() {
  { queue_options; options IRONIC_OPTIONS; } | written "$LAB/ironic/options.conf"
  start ironic "$HERE/program" "$(ironic_commands).singleprocess" \
    --config-file "$LAB/ironic/ironic.conf" --config-file "$LAB/ironic/options.conf"
  wait_for ironic answers "$(ironic_port)"
}

# ironic_commands prints the package of Ironic's programs.
ironic_commands() { if module ironic/command >/dev/null; then echo ironic.command; else echo ironic.cmd; fi; }

ironic_schema() {
  mariadb_new ironic
  quietly ironic-dbsync "$HERE/program" "$(ironic_commands).dbsync" --config-file "$LAB/ironic/ironic.conf" create_schema
  touch "$LAB/ironic/schema"
}

# Fake hardware answers from Ironic's database, so reading its power often is cheap.
ironic_settings() {
  mkdir -p "$LAB/ironic"
  written "$LAB/ironic/ironic.conf" <<E
[DEFAULT]
host = ironic
my_ip = 127.0.0.1
state_path = $LAB/ironic
use_stderr = true
auth_strategy = keystone
# since Antelope, users of services see nodes of other projects only so
rbac_service_role_elevated_access = true
rpc_transport = oslo
transport_url = $(rabbitmq_url)
rootwrap_config = /dev/null
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = no-console
enabled_deploy_interfaces = fake
enabled_inspect_interfaces = no-inspect
enabled_management_interfaces = fake
enabled_network_interfaces = noop
enabled_power_interfaces = fake,ipmitool
enabled_raid_interfaces = no-raid
enabled_rescue_interfaces = no-rescue
enabled_storage_interfaces = noop
enabled_vendor_interfaces = no-vendor
[api]
host_ip = 127.0.0.1
port = $(ironic_port)
api_workers = 1
[conductor]
automated_clean = false
sync_power_state_interval = 10
workers_pool_size = 60
[ipmi]
cipher_suite_versions = 3
command_retry_timeout = 15
min_command_interval = 1
[dhcp]
dhcp_provider = none
[database]
connection = $(mariadb_url ironic)
[oslo_concurrency]
lock_path = $LAB/ironic/locks
$(keystone_authtoken ironic)
$(keystone_client service_catalog ironic)
$(keystone_client glance ironic)
$(keystone_client neutron ironic)
$(keystone_client nova ironic)
send_power_notifications = false
E
}
