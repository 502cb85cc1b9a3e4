// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/enforcement/remote"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
	"github.com/almanac-cloud/almanac/reservation/tariff/feed"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	"github.com/almanac-cloud/almanac/reservation/webhook"
	"github.com/almanac-cloud/almanac/weighers"
)

// everyOption sets every option to a value other than its default.
const everyOption = `
[DEFAULT]
debug = Yes
log_file = /var/log/almanac.log
log_dir = /var/log
use_json = 1
roles = inventory
host = node1
transport_url = rabbit://u:p@mq//
control_exchange = nova
rpc_response_timeout = 5
graceful_shutdown_timeout = 6
default_availability_zone = zone1
[oslo_messaging_rabbit]
ssl = true
ssl_ca_file = ca
ssl_cert_file = cert
ssl_key_file = key
ssl_enforce_hostname_verification = false
heartbeat_timeout_threshold = 7
rabbit_retry_interval = 8
rabbit_retry_backoff = 9
rabbit_interval_max = 10
amqp_durable_queues = true
amqp_auto_delete = true
rabbit_quorum_queue = true
rabbit_quorum_delivery_limit = 11
rabbit_transient_quorum_queue = true
rabbit_stream_fanout = true
rabbit_quorum_max_memory_length = 13
rabbit_quorum_max_memory_bytes = 14
rabbit_transient_queues_ttl = 12
[oslo_messaging_notifications]
driver = messagingv2
topics = a, b
transport_url = rabbit://n:p@mq//
formats = blazar
[oslo_middleware]
enable_proxy_headers_parsing = true
[oslo_policy]
policy_file = rules.yaml
policy_dirs = rules.d
[keystone_authtoken]
auth_url = http://keystone
www_authenticate_uri = http://public
auth_type = v3password
username = name
user_id = uid
password = pw
user_domain_id = udid
user_domain_name = udn
project_name = pn
project_id = pid
project_domain_id = pdid
project_domain_name = pdn
system_scope = all
application_credential_id = acid
application_credential_name = acn
application_credential_secret = acs
region_name = R
interface = internal
cafile = ca
insecure = true
http_request_timeout = 13
token_cache_time = 14
token_cache_size = 15
service_token_roles = x, y
service_token_roles_required = false
[api]
host = ::1
port = 0
auth_strategy = keystone
max_body_bytes = 2048
request_timeout = 16
drain_delay = 17
rate_limit = 18
rate_burst = 19
requests_at_once = 32
streams = 33
streams_per_project = 34
failure_limit = 20
failure_burst = 21
feed_secret = fs
dashboard = no
[noauth]
project_id = p
user_id = u
roles = admin,
  member , reader,
[database]
connection = file:almanac.db
busy_timeout = 0
max_pool_size = 20
max_overflow = 21
connection_recycle_time = 22
max_retries = -1
retry_interval = 23
db_max_retries = 24
db_max_retry_interval = 25
transaction_timeout = 3
[inventory]
source = openstack
hosts_file = hosts.yaml
refresh_interval = 1h
full_poll_interval = 26m
max_change_percent = 27
trust_after = 28m
[nova]
region_name = NR
valid_interfaces = admin
endpoint_override = http://nova
cafile = nca
insecure = true
timeout = 29
max_microversion = 2.87
notifications = true
transport_url = rabbit://nova
cells_file = cells.txt
cell = c1
[placement]
region_name = PR
valid_interfaces = public, internal
endpoint_override = http://placement
cafile = pca
insecure = true
timeout = 31
[glance]
region_name = GR
valid_interfaces = admin
endpoint_override = http://glance
cafile = gca
insecure = true
timeout = 32
[neutron]
region_name = NER
valid_interfaces = public
endpoint_override = http://neutron
cafile = nca
insecure = true
timeout = 33
[blazar]
enabled = false
minutes_before_end_lease = 15
list_all_for_admin = false
pool = enrolled
mirror_aggregates = true
freepool_aggregate = pool

[besteffort]
enabled = true
wakeup_interval = 2
backfilling = intermediate
backfilling_reservations = 3
suspension = none
migration = no
scheduling_threshold_factor = 2.5
suspend_rate = 4
resume_rate = 5
boot_time = 6
shutdown_time = 7
operation_time = 8
build_timeout = 9
order_timeout = 10
retries = 11
retry_interval = 12
max_vms_per_project = 13
retention = 2h
[packing]
cpu_need = diagnostics
cpu_share = 0.5
max_migrations = 1
max_migrated_memory_mb = 2
min_gain = 0.25
min_yield_floor = 0.75
move_timeout = 3
max_failures = 4
poll_interval = 5
[tariff]
source = https://prices/day-ahead.csv
refresh_interval = 31
timeout = 32
max_age = 55m
[webhooks]
allowed = hooks.example.org,192.0.2.0/24
max_per_project = 12
give_up_after = 2h
source = https://almanac/
[tracing]
enabled = true
endpoint = https://collector/v1/traces
sample_ratio = 0.25
[staging]
enabled = no
strategy = jit
repository_rate = 1
link_rate = 2
pool_limit = 3
margin = 4
poll_interval = 8
timeout_factor = 6
retries = 7
retry_delay = 8
remove_unused_base_images = no
remove_unused_original_minimum_age_seconds = 90
[preemptible]
extra_spec = spot
hint = cheap
projects = p1, p2
protect_metadata = keep
preempt_action = shelve
eviction_notice = 41
eviction_timeout = 42
fill_reserved = false
victim_cost = price
cost_period = 43
price_extra_spec = cents
priority_extra_spec = rank
[api_database]
connection = mysql+pymysql://n:p@db/nova_api
[scheduler]
mode = replace
forward_transport_url = rabbit://n:p@mq/behind
workers = 36
max_attempts = 4
decision_retention = 37d
limit_tenants_to_placement_aggregate = true
placement_aggregate_required_for_tenants = true
enable_isolated_aggregate_filtering = true
query_placement_for_image_type_support = true
image_metadata_prefilter = true
query_placement_for_routed_network_aggregates = true
[filter_scheduler]
enabled_filters = ComputeFilter
available_filters = nova.scheduler.filters.compute_filter.ComputeFilter
max_io_ops_per_host = 6
max_instances_per_host = 7
isolated_images = i1, i2
isolated_hosts = h[1-2]
restrict_isolated_hosts_to_isolated_images = false
aggregate_image_properties_isolation_namespace = os
aggregate_image_properties_isolation_separator = _
weight_classes = RAMWeigher, CPUWeigher
host_subset_size = 5
image_properties_default_architecture = aarch64
shuffle_best_same_weighed_hosts = true
cpu_weight_multiplier = 0.5
ram_weight_multiplier = -2
disk_weight_multiplier = 3
io_ops_weight_multiplier = 4
build_failure_weight_multiplier = 1e3
pci_weight_multiplier = 8
soft_affinity_weight_multiplier = 9
soft_anti_affinity_weight_multiplier = 10
cross_cell_move_weight_multiplier = -11
hypervisor_version_weight_multiplier = 12
num_instances_weight_multiplier = -13
image_props_weight_multiplier = 14
image_props_weight_setting = os_distro=1, hw_machine_type=-2
free_time_weight_multiplier = 6
kw_ranking_weight_multiplier = 7
overcommit_weight_multiplier = 14
preemption_cost_weight_multiplier = 15
period_weight_multiplier = 16
preemptible_count_weight_multiplier = 17
[metrics]
weight_setting = cpu.percent=-1
weight_multiplier = 15
[healing]
enabled = false
grace = 34
window = 35m
[reservation]
running_instances = migrate
preemptible_instances = shelve
ended_instances = wait
eviction_time = 32
end_grace = 33
root_disk = 34
flavors = m1.small, m1.large
default_policy = pe-worst-fit
fence = lead_time
lead_time = 30d
before_end = 90
on_end = shelve
on_end_choices = shelve, stop
idempotency_key_ttl = 2h30m
[limits]
max_duration = 0
max_start_ahead = 10d
max_hosts_per_project = 12
max_host_hours_per_project = 1000
max_empty_leases_per_project = 13
extension_window = 1d12h
max_hold = 20m
max_holds_per_project = 14
max_waiting_per_project = 15
[enforcement]
enabled_filters = MaxLeaseDurationFilter, ExternalServiceFilter
max_lease_duration = 86400
max_lease_duration_exempt_project_ids = a, b
external_service_base_endpoint = http://usage/v1/
external_service_check_create_endpoint = http://usage/cc
external_service_commit_create_endpoint = http://usage/c
external_service_check_update_endpoint = http://usage/cu
external_service_commit_update_endpoint = http://usage/u
external_service_on_end_endpoint = http://usage/e
external_service_token = secret
external_service_bearer_token = bearer
external_service_keystone_token = true
external_service_timeout = 7
external_service_exempt_project_ids = c
[lifecycle]
poll_interval = 60
` + energyText

// onlyValue is the option with a single allowed value.
const onlyValue = "migration = no"

// An option that the texts and the values of these tests leave out would hold nothing. So each option of
// the table is in the text, and differs from its default.
func TestTheTestsSetEveryOption(t *testing.T) {
	got, err := load(t, everyOption)
	if err != nil {
		t.Fatal(err)
	}
	preset := shownLines(t, defaults(t))
	for i, line := range shownLines(t, got) {
		if line == preset[i] && line != "" && line[0] != '[' && line != onlyValue {
			t.Errorf("%q is the default: set it in everyOption or energyText to something else, and its field in TestEveryOptionReachesItsField", line)
		}
	}
}

func shownLines(t *testing.T, c config.Config) []string {
	t.Helper()
	var shown bytes.Buffer
	if err := config.Show(&shown, c); err != nil {
		t.Fatal(err)
	}
	return strings.Split(shown.String(), "\n")
}

func TestEveryOptionReachesItsField(t *testing.T) {
	got, err := load(t, everyOption)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Config{
		Default: config.Default{
			Debug: true, LogFile: "/var/log/almanac.log", LogDir: "/var/log", UseJSON: true,
			Roles: []string{"inventory"}, Host: "node1", TransportURL: "rabbit://u:p@mq//", ControlExchange: "nova",
			RPCResponseTimeout: 5 * time.Second, GracefulShutdownTimeout: 6 * time.Second,
		},
		Rabbit: config.Rabbit{
			Options: amqp.Options{
				TLS:       amqp.TLS{Enabled: true, CAFile: "ca", CertFile: "cert", KeyFile: "key"},
				Heartbeat: 7 * time.Second, RetryInterval: 8 * time.Second, RetryBackoff: 9 * time.Second, IntervalMax: 10 * time.Second,
			},
			Queues: oslo.QueueOptions{
				Durable: true, AutoDelete: true, Quorum: true, DeliveryLimit: 11, TransientTTL: 12 * time.Second, TransientQuorum: true, MaxMemoryLength: 13, MaxMemoryBytes: 14,
				StreamFanout: true,
			},
		},
		Notifications: config.Notifications{
			Enabled: true, Topics: []string{"a", "b"}, TransportURL: "rabbit://n:p@mq//", Formats: []string{"blazar"},
		},
		Policy: config.Policy{File: "rules.yaml", Dirs: []string{"rules.d"}},
		Keystone: config.Keystone{
			WWWAuthenticateURI: "http://public", AuthType: "v3password",
			Options: keystone.Options{
				Connection: keystone.Connection{
					AuthURL:  "http://keystone",
					Username: "name", UserID: "uid", Password: "pw", UserDomainID: "udid", UserDomainName: "udn",
					ProjectName: "pn", ProjectID: "pid", ProjectDomainID: "pdid", ProjectDomainName: "pdn", SystemScope: "all",
					ApplicationCredentialID: "acid", ApplicationCredentialName: "acn", ApplicationCredentialSecret: "acs",
					Region: "R", Interface: "internal", CAFile: "ca", Insecure: true, Timeout: 13 * time.Second,
				},
				TokenCacheTime: 14 * time.Second, CacheSize: 15, ServiceTokenRoles: []string{"x", "y"}, ServiceTokenRolesRequired: false,
			},
		},
		API: config.API{
			Host: "::1", Port: 0, AuthStrategy: "keystone", MaxBodyBytes: 2048, RequestTimeout: 16 * time.Second,
			DrainDelay: 17 * time.Second, RateLimit: 18, RateBurst: 19, RequestsAtOnce: 32, Streams: 33, StreamsPerProject: 34, FailureLimit: 20, FailureBurst: 21, FeedSecret: "fs", ParseProxyHeaders: true,
		},
		NoAuth: config.NoAuth{ProjectID: "p", UserID: "u", Roles: []string{"admin", "member", "reader"}},
		Database: config.Database{
			Connection: "file:almanac.db", BusyTimeout: 0, MaxPoolSize: 20, MaxOverflow: 21,
			ConnectionRecycleTime: 22 * time.Second, MaxRetries: -1, RetryInterval: 23 * time.Second,
			DBMaxRetries: 24, DBMaxRetryInterval: 25 * time.Second, TransactionTimeout: 3 * time.Second,
		},
		Inventory: config.Inventory{
			Source: "openstack", HostsFile: "hosts.yaml", RefreshInterval: time.Hour,
			FullPollInterval: 26 * 60, Trust: inventory.TrustRules{MaxChangePercent: 27, SettleTime: 28 * 60},
		},
		Nova: config.Nova{
			Options: openstack.Options{
				Region: "NR", Interfaces: []string{"admin"}, Override: "http://nova", CAFile: "nca",
				Insecure: true, Timeout: 29 * time.Second, MaxMicroversion: "2.87",
			},
			Notifications: true, TransportURL: "rabbit://nova",
		},
		Placement: openstack.Options{
			Region: "PR", Interfaces: []string{"public", "internal"}, Override: "http://placement",
			CAFile: "pca", Insecure: true, Timeout: 31 * time.Second,
		},
		Preemptible: config.Preemptible{
			Rule:   inventory.PreemptibleRule{ExtraSpec: "spot", Hint: "cheap", Projects: []string{"p1", "p2"}, Protect: "keep"},
			Action: upkeep.OrderShelve, Eviction: eviction.Options{Notice: 41 * time.Second, Timeout: 42 * time.Second},
			Cost: "price", CostOptions: preemption.CostOptions{Period: 43, PriceSpec: "cents", PrioritySpec: "rank"},
		},
		Scheduler: config.Scheduler{
			Mode: "replace", ForwardTransportURL: "rabbit://n:p@mq/behind", Workers: 36, MaxAttempts: 4, DecisionRetention: 37 * day,
		},
		Filters: config.FilterScheduler{
			EnabledFilters: []string{"ComputeFilter"}, HostSubsetSize: 5, ShuffleBest: true,
			Options: filters.Options{
				LimitTenantsToPlacementAggregate: true, PlacementAggregateRequiredForTenants: true, EnableIsolatedAggregateFiltering: true,
				DefaultAvailabilityZone: "zone1", Available: []string{"nova.scheduler.filters.compute_filter.ComputeFilter"},
				ImagePropertiesDefaultArchitecture: "aarch64", MaxIOOpsPerHost: 6, MaxInstancesPerHost: 7,
				IsolatedImages: []string{"i1", "i2"}, IsolatedHosts: []string{"h1", "h2"},
				AggregateImagePropertiesIsolationNamespace: "os", AggregateImagePropertiesIsolationSeparator: "_",
			},
		},
		Weighers: config.Weighers{
			Classes: []string{"RAMWeigher", "CPUWeigher"},
			Multipliers: map[string]float64{
				"cpu_weight_multiplier": 0.5, "ram_weight_multiplier": -2, "disk_weight_multiplier": 3, "io_ops_weight_multiplier": 4,
				"build_failure_weight_multiplier": 1000, "pci_weight_multiplier": 8, "soft_affinity_weight_multiplier": 9,
				"soft_anti_affinity_weight_multiplier": 10, "cross_cell_move_weight_multiplier": -11, "metrics_weight_multiplier": 15,
				"hypervisor_version_weight_multiplier": 12, "num_instances_weight_multiplier": -13, "image_props_weight_multiplier": 14,
				"free_time_weight_multiplier": 6, "kw_ranking_weight_multiplier": 7, "overcommit_weight_multiplier": 14,
				"preemption_cost_weight_multiplier": 15, "period_weight_multiplier": 16, "preemptible_count_weight_multiplier": 17,
			},
			Nova: weighers.Nova{ImageProperties: []string{"os_distro=1", "hw_machine_type=-2"}, Metrics: []string{"cpu.percent=-1"}},
		},
		Prefilters: object.Prefilters{ImageTypes: true, ImageMetadata: true, RoutedNetworks: true},
		Cells:      config.Cells{APIDatabase: "mysql+pymysql://n:p@db/nova_api", File: "cells.txt", UUID: "c1"},
		Reservation: config.Reservation{
			Defaults: planning.Defaults{
				Policy: calendar.PolicyPEWorstFit, OnEnd: reservation.OnEndShelve, OnEndChoices: []reservation.OnEnd{reservation.OnEndShelve, reservation.OnEndStop},
			},
			Fence: filters.FenceLeadTime, BeforeEnd: 90, IdempotencyKeyTTL: 150 * time.Minute, Flavors: []string{"m1.small", "m1.large"},
			Rules: upkeep.Rules{
				LeadTime: 30 * day, Normal: upkeep.OrderMigrate, Left: upkeep.OrderWait, Preemptible: upkeep.OrderShelve, Eviction: 32,
				EndGrace: 33, Fence: fence.Rules{RootDisk: 34},
			},
		},
		Limits: planning.Limits{Duration: 0, StartAhead: 10 * day, Hosts: 12, HostSeconds: 1000 * 3600, EmptyLeases: 13, ExtensionWindow: 36 * 3600, Hold: 1200, Holds: 14, Waiting: 15},
		Enforcement: config.Enforcement{
			Rules: enforcement.Rules{
				Enabled: enforcement.Names, MaxDuration: 86400, MaxDurationExempt: []string{"a", "b"}, ServiceExempt: []string{"c"},
			},
			Service: remote.Options{
				Base: "http://usage/v1/", CheckCreate: "http://usage/cc", CommitCreate: "http://usage/c", CheckUpdate: "http://usage/cu",
				CommitUpdate: "http://usage/u", OnEnd: "http://usage/e", Token: "secret", BearerToken: "bearer", KeystoneToken: true, Timeout: 7 * time.Second,
			},
		},
		Lifecycle: config.Lifecycle{PollInterval: time.Minute},
		Healing:   config.Healing{Rules: upkeep.HealingRules{Grace: 34, Window: 35 * 60}},
		Energy:    energySet,
		Blazar:    config.Blazar{MinutesBeforeEndLease: 15, OnlyEnrolled: true, MirrorAggregates: true, FreePool: "pool"},
		BestEffort: config.BestEffort{
			Enabled: true, WakeupInterval: 2 * time.Second, MaxVMsPerProject: 13, Retention: 2 * 3600,
			Rules: besteffort.Rules{
				Backfilling: besteffort.Intermediate, Promises: 3, Worthwhile: 2.5,
				Overheads: besteffort.Overheads{SuspendRate: 4, ResumeRate: 5, Boot: 6, Shutdown: 7, Operation: 8},
			},
			Limits: state.Limits{Build: 9, Order: 10, Retries: 11, Backoff: 12},
		},
		Packing: config.Packing{
			CPUNeed: "diagnostics", Yield: filters.Yield{Share: 0.5, Floor: 0.75}, Preset: rebalance.Options{Migrations: 1, MemoryMB: 2, Gain: 0.25},
			Executor: rebalance.ExecutorOptions{Timeout: 3, MostFailed: 4, Every: 5 * time.Second},
		},
		Glance: openstack.Options{
			Region: "GR", Interfaces: []string{"admin"}, Override: "http://glance", CAFile: "gca", Insecure: true, Timeout: 32 * time.Second,
		},
		Neutron: openstack.Options{
			Region: "NER", Interfaces: []string{"public"}, Override: "http://neutron", CAFile: "nca", Insecure: true, Timeout: 33 * time.Second,
		},
		Staging: config.Staging{Rules: controller.Rules{
			Strategy: staging.JIT, Rate: 1e6, Link: 2e6, Limit: 3 << 30, Margin: 4, Poll: 8 * time.Second,
			Factor: 6, Retries: 7, RetryDelay: 8, Lifetime: 90,
		}},
		Webhooks: webhook.Settings{Allowed: []string{"hooks.example.org", "192.0.2.0/24"}, MostPerProject: 12, GiveUpAfter: 7200, Source: "https://almanac/"},
		Tariff:   feed.Options{Source: "https://prices/day-ahead.csv", Every: 31 * time.Second, Timeout: 32 * time.Second, MaxAge: 3300},
		Tracing:  tracing.Options{Enabled: true, Endpoint: "https://collector/v1/traces", SampleRatio: 0.25},
	}
	got.Folder = ""
	if diff := cmp.Diff(want, got, unexported); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}
