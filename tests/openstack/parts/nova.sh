# SPDX-License-Identifier: Apache-2.0
# Nova without computes: nova-conductor, nova-scheduler and nova-api, with
# flavors m1.tiny to m1.large. $LAB/nova-manage uses its databases.
#
# nova-scheduler-behind is a second nova-scheduler, on the virtual host behind. It
# answers the requests that Almanac passes on when Almanac serves Nova's topic.
#
# With CELLS=2 there are the cells cell1 and cell2. Each has a database, a virtual host
# and a nova-conductor-cellN, which cannot reach the API database, and half of the
# computes. nova-conductor is the one above them. With one cell it serves the cell too.

nova_packages="curl python3-nova python3-pymysql"
nova_needs="mariadb rabbitmq keystone placement glance neutron"

nova_port() { echo $((BASE + 9)); }

# nova_cells prints the names of the cells with computes.
nova_cells() { seq -f 'cell%g' "$(nova_cells_number)"; }

# nova_cells_number prints how many cells the lab has, or a new lab CELLS, by default 1.
nova_cells_number() {
  if [ -e "$LAB/cells" ]; then cat "$LAB/cells"; else echo "${CELLS:-1}"; fi
}

# nova_split: true if there are several cells
nova_split() { [ "$(nova_cells_number)" -gt 1 ]; }

nova_up() {
  local cell
  nova_settings
  await mariadb
  [ -e "$LAB/nova/schema" ] || nova_schema
  # nova-scheduler needs Placement in the catalog when it starts
  await rabbitmq keystone placement
  rabbitmq_bound_notifications
  [ -z "${LIMITS:-}" ] || nova_limits
  nova_start nova-conductor
  if nova_split; then
    for cell in $(nova_cells); do
      rabbitmq_virtual_host "$cell"
      nova_start "nova-conductor-$cell"
    done
  fi
  nova_start nova-scheduler
  nova_start nova-api
  quietly nova-flavors cloud flavors
  publish nova "$(nova_port)"
}

# nova_limits makes Nova enforce unified limits, which it reads as a reader of the
# system.
nova_limits() {
  local endpoint
  [ "$LIMITS" = unified ] || die "LIMITS is unified, not $LIMITS"
  endpoint=$(cloud limits)
  cat >"$LAB/nova/limits.conf" <<E
[quota]
driver = nova.quota.UnifiedLimitsDriver
[oslo_limit]
auth_type = password
auth_url = $(keystone_url)
username = nova
password = $PASSWORD
user_domain_id = default
system_scope = all
endpoint_id = $endpoint
E
  nova_settings
}

# nova_start NAME
nova_start() {
  local script module=${1#nova-} files=(--config-file "$LAB/nova/nova.conf" --config-file "$LAB/nova/control.conf")
  case $1 in
    nova-api) module=api_os_compute ;;
    nova-conductor-*)
      module=conductor
      files=(--config-file "$LAB/nova/nova.conf" --config-file "$LAB/nova/${1#nova-conductor-}.conf"
        --config-file "$LAB/nova/${1#nova-conductor-}-control.conf")
      ;;
    nova-scheduler-behind)
      module=scheduler
      files+=(--config-file "$LAB/nova/behind.conf")
      [ -z "${NOVA_MODULES:-}" ] || export PYTHONPATH=$NOVA_MODULES
      nova_behind
      ;;
  esac
  if [ "$1" = nova-api ] && script=$(module nova/wsgi/osapi_compute.py); then
    start_wsgi nova-api "$(nova_port)" 1 "$script" OS_NOVA_CONFIG_DIR="$LAB/nova" \
      OS_NOVA_CONFIG_FILES="$HERE/nova-paste.ini;nova.conf;control.conf"
  else
    start "$1" "$HERE/program" "nova.cmd.$module" "${files[@]}"
  fi
  [ "$1" != nova-api ] || wait_for "$1" answers "$(nova_port)"
}

# nova_behind configures a host of its own; otherwise both nova-schedulers would
# share one service record.
nova_behind() {
  rabbitmq_virtual_host behind
  {
    printf '[DEFAULT]\nhost = behind\ntransport_url = %sbehind\n' "$(rabbitmq_url)"
    options NOVA_OPTIONS
  } >"$LAB/nova/behind.conf"
}

nova_schema() {
  local name
  for name in api cell0 $(nova_cells); do mariadb_new "nova_$name"; done
  quietly nova-manage "$HERE/nova_schema.py" "$(nova_cells_number)" "$LAB/nova" --config-file "$LAB/nova/nova.conf" --config-file "$LAB/nova/control.conf"
  touch "$LAB/nova/schema"
}

nova_settings() {
  local database=nova_cell1 number
  number=$(nova_cells_number)
  [ "${CELLS:-$number}" = "$number" ] ||
    die "this lab has $number cells; for another number: lab down --wipe, or another LAB"
  [[ $number =~ ^[12]$ ]] || die "CELLS is 1 or 2, not $number"
  echo "$number" | written "$LAB/cells"
  mkdir -p "$LAB/nova"
  # an existing lab keeps its options, like its tables
  [ -e "$LAB/nova/schema" ] || { queue_options; options NOVA_OPTIONS; } >"$LAB/nova/options.conf"
  {
    nova_conf
    if nova_split; then nova_split_conf; fi
    cat "$LAB"/nova/{options,limits}.conf 2>/dev/null || true # those that exist
  } | written "$LAB/nova/nova.conf"
  if nova_split; then
    database=nova_cell0
    nova_cell_settings
  fi
  # not in the file that nova-compute reads: it complains about a database, and
  # many hosts should begin their periodic work at different times
  written "$LAB/nova/control.conf" <<E
[DEFAULT]
periodic_fuzzy_delay = 0
[api_database]
connection = $(mariadb_url nova_api)
[database]
connection = $(mariadb_url $database)
E
  command_file "$LAB/nova-manage" "LAB=$LAB" "$HERE/lab" within "$HERE/program" nova.cmd.manage \
    --config-file "$LAB/nova/nova.conf" --config-file "$LAB/nova/control.conf"
}

# nova_cell_settings writes what the services of each of several cells read beside
# nova.conf; cellN-control.conf is for its conductor alone.
nova_cell_settings() {
  local cell
  for cell in $(nova_cells); do
    written "$LAB/nova/$cell.conf" <<E
[DEFAULT]
transport_url = $(rabbitmq_url)$cell
E
    written "$LAB/nova/$cell-control.conf" <<E
[DEFAULT]
periodic_fuzzy_delay = 0
[database]
connection = $(mariadb_url "nova_$cell")
E
  done
}

# nova_split_conf prints what all services need if there are several cells. Almanac
# hears of the computes at the broker above the cells. Services of a cell cannot ask
# the API database for the members of a server group.
nova_split_conf() {
  cat <<E
[oslo_messaging_notifications]
transport_url = $(rabbitmq_url)
[workarounds]
disable_group_policy_check_upcall = true
E
}

# Tests wait for reports, so they are frequent. With many hosts they and other
# periodic work would use the whole machine. No host is down because its reports come
# late, which they do on a slow machine; `lab kill` says at once that a host is down.
nova_conf() {
  local report=2 update=60
  if [ "$(computes_number)" -gt 16 ]; then report=60 update=600; fi
  if [ "$(computes_number)" -gt 500 ]; then report=120 update=1800; fi
  cat <<E
[DEFAULT]
host = controller
my_ip = 127.0.0.1
state_path = $LAB/nova
use_stderr = true
graceful_shutdown_timeout = 3
transport_url = $(rabbitmq_url)
enabled_apis = osapi_compute
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = $(nova_port)
osapi_compute_workers = 1
compute_driver = fake.LabDriver
rootwrap_config = /dev/null
initial_cpu_allocation_ratio = 16.0
initial_ram_allocation_ratio = 1.5
report_interval = $report
service_down_time = 300
update_resources_interval = $update
sync_power_state_interval = -1
heal_instance_info_cache_interval = -1
shelved_poll_interval = -1
scheduler_instance_sync_interval = 600
[wsgi]
api_paste_config = $HERE/nova-paste.ini
[oslo_concurrency]
lock_path = $LAB/nova/locks
[conductor]
workers = 1
[scheduler]
workers = 1
enable_isolated_aggregate_filtering = true
discover_hosts_in_cells_interval = 5
[quota]
instances = -1
cores = -1
ram = -1
[vnc]
enabled = false
[compute]
resource_provider_association_refresh = $((5 * update))
[oslo_messaging_notifications]
driver = messagingv2
[notifications]
notification_format = versioned
notify_on_state_change = vm_and_task_state
$(keystone_authtoken nova)
$(keystone_client placement nova)
$(keystone_client glance nova)
$(keystone_client neutron nova)
E
}
