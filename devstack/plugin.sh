#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Almanac in DevStack. stack.sh, unstack.sh and clean.sh source this file as
#
#   plugin.sh MODE [PHASE]
#
# in mode stack with the phases pre-install, install, post-config, extra and
# test-config, and in the modes unstack and clean. The settings are in the file
# `settings`; README.md explains them.

_XTRACE_ALMANAC=$(set +o | grep xtrace)
set +o xtrace

ALMANAC_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ALMANAC_INVENTORY_CONF=$ALMANAC_CONF_DIR/inventory.conf
ALMANAC_BEHIND_CONF=$ALMANAC_CONF_DIR/nova-behind.conf
# stack.sh sets SSL_BUNDLE_FILE, and creates the file if TLS is in use; unstack.sh
# does not set it
ALMANAC_CA_FILE=${SSL_BUNDLE_FILE:-$DATA_DIR/ca-bundle.pem}
ALMANAC_PROTECTIONS=$GLANCE_CONF_DIR/almanac-property-protections.conf

# is_service_enabled calls this for `almanac`
function is_almanac_enabled {
    [[ ,${ENABLED_SERVICES}, =~ ,almanac-(api|inventory), ]]
}

# True if Almanac answers Nova's requests for hosts, with a nova-scheduler behind it
function is_almanac_before_nova {
    [[ "$ALMANAC_NOVA_MODE" =~ ^(interpose|replace)$ ]]
}

# Refuses settings that cannot work before anything is installed
function check_almanac {
    if [[ ! "$ALMANAC_NOVA_MODE" =~ ^(off|plugin|interpose|replace)$ ]]; then
        die $LINENO "ALMANAC_NOVA_MODE must be off, plugin, interpose or replace, not $ALMANAC_NOVA_MODE"
    fi
    if is_service_enabled blazar blazar-a blazar-m; then
        die $LINENO "Almanac and Blazar both have the service type reservation: enable one of them"
    fi
    if [[ -n "$ALMANAC_GO" && ! -x "$ALMANAC_GO" ]]; then
        die $LINENO "ALMANAC_GO is $ALMANAC_GO, which is no command"
    fi
    if [[ -n "$ALMANAC_BINARIES" && ! ( -x "$ALMANAC_BINARIES/almanacd" && -x "$ALMANAC_BINARIES/almanac" ) ]]; then
        die $LINENO "ALMANAC_BINARIES is $ALMANAC_BINARIES, which does not contain both almanacd and almanac"
    fi
    if ! is_service_enabled mysql || ! is_service_enabled rabbit; then
        die $LINENO "Almanac needs the services mysql and rabbit on this machine"
    fi
    if is_almanac_before_nova && [[ "$ALMANAC_ROLES_APART" == "True" ]]; then
        die $LINENO "ALMANAC_ROLES_APART requires ALMANAC_NOVA_MODE=off or plugin: answering Nova requires one process"
    fi
    if [[ "$ALMANAC_NOVA_MODE" != "off" ]] && ! is_service_enabled n-sch; then
        die $LINENO "ALMANAC_NOVA_MODE=$ALMANAC_NOVA_MODE needs nova-scheduler (n-sch) on this machine"
    fi
}


# Installation
# ------------

# Prints the command go, or nothing
function _almanac_go {
    local go
    for go in "$ALMANAC_GO" "$(type -P go)" /usr/local/go/bin/go; do
        if [[ -x "$go" ]]; then
            echo "$go"
            return
        fi
    done
}

function install_almanac_go {
    if [[ -z "$ALMANAC_BINARIES" && -z "$(_almanac_go)" ]]; then
        install_package "$ALMANAC_GO_PACKAGE"
    fi
}

# Go 1.21 and later fetch the version that go.mod names. GOTOOLCHAIN enables this
# again where a distribution has disabled it.
function build_almanac {
    local into=$1
    local go have need version
    go=$(_almanac_go)
    [[ -n "$go" ]] || die $LINENO "there is no command go: set ALMANAC_GO or ALMANAC_BINARIES"
    need=$(sed -n 's/^go //p' "$ALMANAC_DIR/go.mod")
    have=$(cd "$ALMANAC_DIR" && GOTOOLCHAIN=auto "$go" env GOVERSION) ||
        die $LINENO "$go cannot fetch Go $need: set ALMANAC_GO or ALMANAC_BINARIES"
    have=${have#go}
    if [[ "$(printf '%s\n' "$need" "$have" | sort -V | head -n 1)" != "$need" ]]; then
        die $LINENO "Almanac needs Go $need and $go is $have, which cannot fetch it: set ALMANAC_GO or ALMANAC_BINARIES"
    fi
    version=$(git -C "$ALMANAC_DIR" describe --tags --always --dirty 2>/dev/null || echo devstack)
    (
        cd "$ALMANAC_DIR" &&
            CGO_ENABLED=0 GOTOOLCHAIN=auto "$go" build -trimpath -buildvcs=false \
                -ldflags "-s -w -X main.version=$version" -o "$into/" ./cmd/almanacd ./cmd/almanac
    )
}

function install_almanac {
    local from=$ALMANAC_BINARIES
    if [[ -z "$from" ]]; then
        from=$(mktemp -d)
        build_almanac "$from"
    fi
    sudo install -d -m 755 "$ALMANAC_BIN_DIR"
    sudo install -m 755 "$from/almanacd" "$from/almanac" "$ALMANAC_BIN_DIR"
    if [[ "$from" != "$ALMANAC_BINARIES" ]]; then
        rm -rf "$from"
    fi
    sudo install -d -m 755 -o "$STACK_USER" "$ALMANAC_CONF_DIR"
}


# Configuration
# -------------

function _almanac_set {
    iniset "$ALMANAC_CONF_FILE" "$@"
}

# _almanac_as_nova SECTION OPTION... copies those options that nova.conf sets to almanac.conf
function _almanac_as_nova {
    local section=$1
    local option
    shift
    for option in "$@"; do
        if ini_has_option "$NOVA_CONF" "$section" "$option"; then
            _almanac_set "$section" "$option" "$(iniget "$NOVA_CONF" "$section" "$option")"
        fi
    done
}

# Prints the options that almanac.conf may have in a section
function _almanac_options {
    "$ALMANAC_BIN_DIR/almanacd" config sample | sed -n "/^\[$1\]/,/^\[/s/^#\([a-z_]*\) =.*/\1/p"
}

function configure_almanac {
    rm -f "$ALMANAC_CONF_FILE"
    install -m 600 /dev/null "$ALMANAC_CONF_FILE"

    _almanac_set DEFAULT debug "$ALMANAC_DEBUG"
    _almanac_set DEFAULT transport_url "$(get_transport_url "$ALMANAC_RABBIT_VHOST")"
    _almanac_set database connection "$(database_connection_url "$ALMANAC_DATABASE")"

    _almanac_set api auth_strategy keystone
    if is_service_enabled tls-proxy; then
        _almanac_set api host 127.0.0.1
        _almanac_set api port "$ALMANAC_SERVICE_PORT_INT"
        _almanac_set oslo_middleware enable_proxy_headers_parsing True
    else
        _almanac_set api host "$(ipv6_unquote "$SERVICE_LISTEN_ADDRESS")"
        _almanac_set api port "$ALMANAC_SERVICE_PORT"
    fi

    configure_keystone_authtoken_middleware "$ALMANAC_CONF_FILE" "$ALMANAC_USER_NAME"
    _almanac_set keystone_authtoken region_name "$REGION_NAME"
    # DevStack sets cafile here even if it has not created the file
    if [[ ! -e "$ALMANAC_CA_FILE" ]]; then
        inidelete "$ALMANAC_CONF_FILE" keystone_authtoken cafile
    fi

    _almanac_set inventory source openstack
    local section
    for section in nova placement; do
        _almanac_set "$section" region_name "$REGION_NAME"
        if [[ -e "$ALMANAC_CA_FILE" ]]; then
            _almanac_set "$section" cafile "$ALMANAC_CA_FILE"
        fi
    done
    _almanac_set nova transport_url "$(get_transport_url)"
    _almanac_set nova notifications True

    configure_almanac_mode
    if [[ "$ALMANAC_ROLES_APART" == "True" ]]; then
        configure_almanac_inventory
    fi
    "$ALMANAC_BIN_DIR/almanacd" --config-file "$ALMANAC_CONF_FILE" config validate
}

# The process with the role inventory reads this file after almanac.conf. It
# reports its health on a port of its own
function configure_almanac_inventory {
    iniset "$ALMANAC_INVENTORY_CONF" api host 127.0.0.1
    iniset "$ALMANAC_INVENTORY_CONF" api port "$ALMANAC_INVENTORY_PORT"
}

# Sets the mode, and the options of nova.conf that almanac.conf must repeat
function configure_almanac_mode {
    _almanac_as_nova DEFAULT default_availability_zone
    # Almanac must declare queues like Nova
    _almanac_as_nova oslo_messaging_rabbit amqp_durable_queues rabbit_quorum_queue rabbit_quorum_delivery_limit \
        rabbit_transient_quorum_queue rabbit_transient_queues_ttl
    if is_almanac_before_nova; then
        _almanac_set scheduler mode "$ALMANAC_NOVA_MODE"
        _almanac_set scheduler forward_transport_url "$(get_transport_url "$ALMANAC_BEHIND_VHOST")"
    fi
    if [[ "$ALMANAC_NOVA_MODE" == "replace" ]]; then
        _almanac_set api_database connection "$(database_connection_url "$NOVA_API_DB")"
        # available_filters has several lines, and workers a different meaning
        local section
        for section in filter_scheduler metrics scheduler; do
            # shellcheck disable=SC2046 # names of options
            _almanac_as_nova "$section" $(_almanac_options "$section" | grep -vxE 'available_filters|workers')
        done
    fi
}

# Nova, Placement and Glance already have their files, and start later
function configure_almanac_neighbours {
    if [[ "$ALMANAC_NOVA_MODE" == "plugin" ]]; then
        configure_almanac_nova_plugin
    else
        iniset "$NOVA_CONF" scheduler enable_isolated_aggregate_filtering True
    fi
    if is_service_enabled g-api; then
        sudo install -m 644 "$ALMANAC_DIR/docs/examples/ops/glance-property-protections.conf" "$ALMANAC_PROTECTIONS"
        iniset "$GLANCE_API_CONF" DEFAULT property_protection_file "$ALMANAC_PROTECTIONS"
        iniset "$GLANCE_API_CONF" DEFAULT property_protection_rule_format roles
    fi
    if is_almanac_before_nova; then
        if is_service_enabled placement-api; then
            iniset "$PLACEMENT_CONF" placement allocation_conflict_retry_count 1
        fi
        # only the nova-scheduler behind Almanac reads this file, after nova.conf
        rm -f "$ALMANAC_BEHIND_CONF"
        install -m 600 /dev/null "$ALMANAC_BEHIND_CONF"
        iniset "$ALMANAC_BEHIND_CONF" DEFAULT host "$ALMANAC_BEHIND_HOST"
        iniset "$ALMANAC_BEHIND_CONF" DEFAULT transport_url "$(get_transport_url "$ALMANAC_BEHIND_VHOST")"
    fi
}

# stack.sh writes nova.conf and placement.conf again, but keeps Glance's file
function unconfigure_almanac_glance {
    if [[ -e "$ALMANAC_PROTECTIONS" ]]; then
        inidelete "$GLANCE_API_CONF" DEFAULT property_protection_file
        inidelete "$GLANCE_API_CONF" DEFAULT property_protection_rule_format
        sudo rm -f "$ALMANAC_PROTECTIONS"
    fi
}

# Registers the service, its endpoints, and Almanac's user with the roles admin
# and service. bootstrap --remove removes them again.
function create_almanac_accounts {
    _almanac_as_admin "$ALMANAC_BIN_DIR/almanacd" --config-file "$ALMANAC_CONF_FILE" bootstrap keystone \
        --region "$REGION_NAME" --reset-password \
        --public-url "$ALMANAC_SERVICE_PROTOCOL://$ALMANAC_SERVICE_HOST:$ALMANAC_SERVICE_PORT/v1"
}

function init_almanac {
    rpc_backend_add_vhost "$ALMANAC_RABBIT_VHOST"
    if is_almanac_before_nova; then
        rpc_backend_add_vhost "$ALMANAC_BEHIND_VHOST"
    fi
    recreate_database "$ALMANAC_DATABASE"
    "$ALMANAC_BIN_DIR/almanacd" --config-file "$ALMANAC_CONF_FILE" db sync
}


# Running
# -------

# Runs a command of Almanac as the admin of the cloud
function _almanac_as_admin {
    local ca=
    if [[ -e "$ALMANAC_CA_FILE" ]]; then
        ca=$ALMANAC_CA_FILE
    fi
    env -u OS_CLOUD -u OS_PROJECT_ID -u OS_SYSTEM_SCOPE \
        OS_AUTH_URL="$KEYSTONE_SERVICE_URI" OS_REGION_NAME="$REGION_NAME" OS_CACERT="$ca" \
        OS_USERNAME=admin OS_PASSWORD="$ADMIN_PASSWORD" OS_PROJECT_NAME=admin \
        OS_USER_DOMAIN_ID=default OS_PROJECT_DOMAIN_ID=default "$@"
}

# _almanac_await COMMAND... repeats the command until it succeeds or the time is
# over, and prints its last output
function _almanac_await {
    local end=$((SECONDS + ALMANAC_TIMEOUT))
    local said
    until said=$("$@" 2>&1); do
        if [[ $SECONDS -ge $end ]]; then
            echo "$said"
            return 1
        fi
        sleep 1
    done
    echo "$said"
}

function start_almanac {
    local almanacd="$ALMANAC_BIN_DIR/almanacd --config-file $ALMANAC_CONF_FILE"
    if [[ "$ALMANAC_ROLES_APART" == "True" ]]; then
        run_process almanac-inventory "$almanacd --config-file $ALMANAC_INVENTORY_CONF --role inventory"
        run_process almanac-api "$almanacd --role api"
    else
        run_process almanac-api "$almanacd"
    fi
    if is_service_enabled tls-proxy; then
        start_tls_proxy almanac '*' "$ALMANAC_SERVICE_PORT" 127.0.0.1 "$ALMANAC_SERVICE_PORT_INT"
    fi
    _almanac_await _almanac_as_admin "$ALMANAC_BIN_DIR/almanac" readiness ||
        die $LINENO "Almanac is not ready: see journalctl --unit devstack@almanac-api"
}

# Almanac replaces the nova-scheduler that DevStack has started, and another one
# starts behind it. Requests wait in the queue while no service reads it.
function put_almanac_before_nova {
    local nova_scheduler="$NOVA_BIN_DIR/nova-scheduler --config-file $NOVA_CONF --config-file $ALMANAC_BEHIND_CONF"
    run_process almanac-n-sch "$nova_scheduler"
    start_almanac
    stop_process n-sch
}

function check_almanac_before_nova {
    _almanac_await "$ALMANAC_BIN_DIR/almanacd" --config-file "$ALMANAC_CONF_FILE" nova mode ||
        die $LINENO "Nova's requests for hosts are not answered according to ALMANAC_NOVA_MODE=$ALMANAC_NOVA_MODE"
}

# Nova discovers hosts after the phase extra
function admit_almanac_hosts {
    local hosts
    if [[ -n "$ALMANAC_RESERVABLE_HOSTS" ]]; then
        # Almanac expands the patterns, not the shell
        read -r -a hosts <<<"$ALMANAC_RESERVABLE_HOSTS"
        _almanac_await _almanac_as_admin "$ALMANAC_BIN_DIR/almanac" host set --reservable "${hosts[@]}" ||
            die $LINENO "ALMANAC_RESERVABLE_HOSTS: $ALMANAC_RESERVABLE_HOSTS cannot be made reservable"
    fi
}

# Tells Tempest which filters are enabled, so that it runs their tests
function configure_almanac_tempest {
    local filters
    if is_service_enabled tempest && [[ "$ALMANAC_NOVA_MODE" == "replace" ]]; then
        filters=$("$ALMANAC_BIN_DIR/almanacd" --config-file "$ALMANAC_CONF_FILE" config show |
            sed -n 's/^enabled_filters *= *//p')
        iniset "$TEMPEST_CONFIG" compute-feature-enabled scheduler_enabled_filters "$filters"
    fi
}


# The plugin of nova-scheduler
# ----------------------------

function install_almanac_nova_plugin {
    pip_install "$ALMANAC_DIR/plugin"
}

# Adds the filter and the weigher to the enabled ones. Promised hosts must reach
# them, whatever else is configured.
function configure_almanac_nova_plugin {
    iniset "$NOVA_CONF" scheduler enable_isolated_aggregate_filtering False
    iniset "$NOVA_CONF" scheduler max_placement_results 10000
    local filters weighers
    if ! ini_has_option "$NOVA_CONF" filter_scheduler available_filters; then
        iniset "$NOVA_CONF" filter_scheduler available_filters nova.scheduler.filters.all_filters
    fi
    iniadd "$NOVA_CONF" filter_scheduler available_filters almanac_nova.AlmanacFilter
    filters=$(iniget "$NOVA_CONF" filter_scheduler enabled_filters)
    iniset "$NOVA_CONF" filter_scheduler enabled_filters "${filters:-$NOVA_FILTERS},AlmanacFilter"
    weighers=$(iniget "$NOVA_CONF" filter_scheduler weight_classes)
    iniset "$NOVA_CONF" filter_scheduler weight_classes \
        "${weighers:-nova.scheduler.weights.all_weighers},almanac_nova.AlmanacWeigher"
    iniset "$NOVA_CONF" almanac auth_section placement
    iniset "$NOVA_CONF" almanac region_name "$REGION_NAME"
    if [[ -e "$ALMANAC_CA_FILE" ]]; then
        iniset "$NOVA_CONF" almanac cafile "$ALMANAC_CA_FILE"
    fi
}


# Removal
# -------

# Stops every process that may run, even if local.conf has changed
function stop_almanac {
    local ENABLED_SERVICES=$ENABLED_SERVICES,almanac-n-sch,almanac-inventory
    local service
    for service in almanac-api almanac-inventory almanac-n-sch; do
        stop_process $service
    done
}

# Keystone, Nova, Placement, RabbitMQ and the database still run. If one of them
# does not, the removal continues with the others.
function remove_almanac {
    local vhost
    if [[ ! -e "$ALMANAC_CONF_FILE" ]]; then
        return
    fi
    _almanac_as_admin "$ALMANAC_BIN_DIR/almanacd" --config-file "$ALMANAC_CONF_FILE" bootstrap --remove --force \
        --region "$REGION_NAME" ||
        warn $LINENO "Almanac could not be removed from the cloud"
    for vhost in "$ALMANAC_RABBIT_VHOST" "$ALMANAC_BEHIND_VHOST"; do
        if sudo rabbitmqctl -q list_vhosts | grep -qxF "$vhost"; then
            sudo rabbitmqctl delete_vhost "$vhost" || warn $LINENO "virtual host $vhost still exists"
        fi
    done
    mysql -u"${DATABASE_USER:-${MYSQL_USER:-root}}" -p"$DATABASE_PASSWORD" -h"$MYSQL_HOST" \
        -e "DROP DATABASE IF EXISTS $ALMANAC_DATABASE;" || warn $LINENO "database $ALMANAC_DATABASE still exists"
}

# Everything has stopped except systemd
function cleanup_almanac {
    sudo rm -f "$ALMANAC_BIN_DIR/almanacd" "$ALMANAC_BIN_DIR/almanac"
    sudo rm -f "$ALMANAC_CONF_FILE" "$ALMANAC_INVENTORY_CONF" "$ALMANAC_BEHIND_CONF"
    if [[ -d "$ALMANAC_CONF_DIR" ]]; then
        sudo rmdir --ignore-fail-on-non-empty "$ALMANAC_CONF_DIR"
    fi
    sudo rm -f "$SYSTEMD_DIR"/devstack@almanac-*.service
    $SYSTEMCTL daemon-reload
}


if is_service_enabled almanac; then
    case "$1 ${2:-}" in
        "stack pre-install")
            echo_summary "Checking the requirements of Almanac"
            check_almanac
            install_almanac_go
            ;;
        "stack install")
            echo_summary "Installing Almanac"
            install_almanac
            if [[ "$ALMANAC_NOVA_MODE" == "plugin" ]]; then
                install_almanac_nova_plugin
            fi
            ;;
        "stack post-config")
            echo_summary "Configuring Almanac"
            configure_almanac_neighbours
            configure_almanac
            create_almanac_accounts
            init_almanac
            ;;
        "stack extra")
            echo_summary "Starting Almanac"
            if is_almanac_before_nova; then
                put_almanac_before_nova
            else
                start_almanac
            fi
            check_almanac_before_nova
            ;;
        "stack test-config")
            echo_summary "Preparing tests with Almanac"
            admit_almanac_hosts
            configure_almanac_tempest
            ;;
        "unstack ")
            stop_almanac
            remove_almanac
            unconfigure_almanac_glance
            ;;
        "clean ")
            cleanup_almanac
            ;;
    esac
fi

$_XTRACE_ALMANAC
