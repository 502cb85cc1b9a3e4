# SPDX-License-Identifier: Apache-2.0
# RabbitMQ: user almanac, password almanac, virtual host /, and the management
# API. $LAB/rabbitmqctl uses this broker.
#
# The private brokers of tests also use rabbitmq-node, rabbitmq.conf and
# rabbitmq.plugins.

rabbitmq_packages="rabbitmq-server"
rabbitmq_needs=""

rabbitmq_port() { echo $((BASE + 1)); }

# rabbitmq_url prints the transport_url of the virtual host /.
rabbitmq_url() { echo "rabbit://almanac:almanac@127.0.0.1:$(rabbitmq_port)/"; }

rabbitmq_management() { echo "http://127.0.0.1:$(($(rabbitmq_port) + 1))/api"; }

rabbitmq_up() {
  rabbitmq_settings "$(rabbitmq_port)"
  rabbitmq_start
  publish rabbitmq "$(rabbitmq_port)"
}

rabbitmq_start() {
  local port
  port=$(rabbitmq_port)
  mkdir -p "$LAB/rabbitmq"
  start epmd env ERL_EPMD_ADDRESS=127.0.0.1 epmd -port $((port + 3)) -address 127.0.0.1
  wait_for epmd listens $((port + 3))
  start rabbitmq "$LAB/rabbitmq-node" "$LAB/rabbitmq" "$port" rabbitmq-server
  wait_for rabbitmq listens "$port"
}

# rabbitmq_bound_notifications limits the queues of notifications to the last
# thousand, because no service reads them.
rabbitmq_bound_notifications() {
  wait_for rabbitmq curl -sf --max-time 60 -u almanac:almanac -X PUT "$(rabbitmq_management)/policies/%2f/notifications" \
    -d '{"pattern": "^(versioned_)?notifications[.]", "definition": {"max-length": 1000}, "apply-to": "queues"}'
}

# rabbitmq_virtual_host NAME creates the virtual host unless it exists.
rabbitmq_virtual_host() {
  wait_for rabbitmq curl -sf --max-time 60 -u almanac:almanac -X PUT "$(rabbitmq_management)/vhosts/$1"
}

# queue_options prints the options of the queues of Nova and Ironic: quorum queues,
# streams and the queue manager with the newest release, as in new deployments, and
# oslo's defaults with the others.
queue_options() {
  [ "$RELEASE" = newest ] || return 0
  cat <<'E'
[oslo_messaging_rabbit]
rabbit_quorum_queue=true
rabbit_transient_quorum_queue=true
use_queue_manager=true
rabbit_stream_fanout=true
rabbit_qos_prefetch_count=10
E
}

# rabbitmq_settings PORT
rabbitmq_settings() {
  written "$LAB/rabbitmq.conf" <<'E'
default_user = almanac
default_pass = almanac
log.console = true
log.console.level = warning
log.file = false
disk_free_limit.absolute = 50MB
E
  echo '[rabbitmq_management].' >"$LAB/rabbitmq.plugins"
  install -m 755 "$HERE/rabbitmq-node" "$LAB/rabbitmq-node"
  command_file "$LAB/rabbitmqctl" "LAB=$LAB" "$HERE/lab" within "$LAB/rabbitmq-node" "$LAB/rabbitmq" "$1" rabbitmqctl
}
