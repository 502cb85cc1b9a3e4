# SPDX-License-Identifier: Apache-2.0
# A real neutron-server in the place of the part neutron: networks, subnets and
# floating IPs, without agents. The external network `public` has 172.24.4.0/24;
# Neutron allocates .2 to .99 by itself, so that the rest can be enrolled.

networks_packages="curl neutron-common python3-neutron python3-pymysql"
networks_needs="mariadb rabbitmq keystone"

networks_up() {
  networks_settings
  await mariadb
  [ -e "$LAB/networks/schema" ] || networks_schema
  await rabbitmq keystone
  networks_start
  quietly networks-public cloud public
  publish networks "$(neutron_port)"
}

networks_start() {
  start networks "$HERE/program" neutron.cmd.eventlet.server --config-file "$LAB/networks/neutron.conf" --config-file "$LAB/networks/ml2_conf.ini"
  wait_for networks answers "$(neutron_port)"
}

networks_schema() {
  mariadb_new neutron
  quietly neutron-db-manage neutron-db-manage --config-file "$LAB/networks/neutron.conf" --config-file "$LAB/networks/ml2_conf.ini" upgrade head
  touch "$LAB/networks/schema"
}

networks_settings() {
  mkdir -p "$LAB"/networks/{locks,state}
  written "$LAB/networks/neutron.conf" <<E
[DEFAULT]
use_stderr = true
bind_host = 127.0.0.1
bind_port = $(neutron_port)
api_workers = 1
rpc_workers = 1
core_plugin = ml2
service_plugins = router
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
dhcp_agent_notification = false
state_path = $LAB/networks/state
api_paste_config = /etc/neutron/api-paste.ini
transport_url = $(rabbitmq_url)
[database]
connection = $(mariadb_url neutron)
[oslo_concurrency]
lock_path = $LAB/networks/locks
$(keystone_authtoken neutron)
$(queue_options)
E
  written "$LAB/networks/ml2_conf.ini" <<E
[ml2]
type_drivers = flat,local
tenant_network_types = local
mechanism_drivers = openvswitch
extension_drivers =
[ml2_type_flat]
flat_networks = public
E
}
