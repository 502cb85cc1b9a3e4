// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/keystone"
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

func TestWithoutFilesTheDefaultsHold(t *testing.T) {
	want := config.Config{
		Default: config.Default{
			Roles: []string{"api", "inventory", "energy"}, ControlExchange: "openstack",
			RPCResponseTimeout: time.Minute, GracefulShutdownTimeout: 30 * time.Second,
		},
		API: config.API{
			Host: "127.0.0.1", Port: 1234, AuthStrategy: "noauth", MaxBodyBytes: 1048576,
			RequestTimeout: 30 * time.Second, RateBurst: 100, RequestsAtOnce: 8, Streams: 2000, StreamsPerProject: 200, FailureLimit: 5, FailureBurst: 500, Dashboard: true,
		},
		NoAuth: config.NoAuth{ProjectID: "demo", UserID: "demo", Roles: []string{"admin"}},
		Keystone: config.Keystone{
			AuthType: "password",
			Options: keystone.Options{
				Connection: keystone.Connection{Timeout: 10 * time.Second}, TokenCacheTime: 5 * time.Minute, CacheSize: 10_000,
				ServiceTokenRoles: []string{"service"}, ServiceTokenRolesRequired: true,
			},
		},
		Policy: config.Policy{File: "policy.yaml", Dirs: []string{"policy.d"}},
		Database: config.Database{
			Connection: "sqlite:///var/almanac.db", BusyTimeout: 5 * time.Second, MaxPoolSize: 5, MaxOverflow: 50,
			ConnectionRecycleTime: time.Hour, MaxRetries: 10, RetryInterval: 10 * time.Second,
			DBMaxRetries: 20, DBMaxRetryInterval: 10 * time.Second, TransactionTimeout: 15 * time.Second,
		},
		Rabbit: config.Rabbit{
			Options: amqp.Options{
				Heartbeat: time.Minute, RetryInterval: time.Second, RetryBackoff: 2 * time.Second, IntervalMax: 30 * time.Second,
				TLS: amqp.TLS{VerifyHostname: true},
			},
			Queues: oslo.QueueOptions{TransientTTL: 30 * time.Minute},
		},
		Notifications: config.Notifications{
			Topics: []string{"notifications"}, Formats: []string{"almanac", "blazar"},
		},
		Inventory: config.Inventory{
			Source: "file", HostsFile: "etc/almanac/hosts.yaml", RefreshInterval: 10 * time.Second,
			FullPollInterval: 10 * 60, Trust: inventory.TrustRules{MaxChangePercent: 20, SettleTime: 10 * 60},
		},
		Nova: config.Nova{
			Options: openstack.Options{Interfaces: []string{"internal", "public"}, Timeout: 30 * time.Second, MaxMicroversion: "2.100"},
		},
		Placement: openstack.Options{Interfaces: []string{"internal", "public"}, Timeout: 30 * time.Second},
		Preemptible: config.Preemptible{
			Rule:   inventory.PreemptibleRule{ExtraSpec: "almanac:preemptible", Hint: "preemptible", Protect: "almanac:protected"},
			Action: upkeep.OrderDelete, Eviction: eviction.Options{Timeout: time.Minute}, FillReserved: true,
			Cost: "partial_hour", CostOptions: preemption.CostOptions{Period: 3600, PriceSpec: "almanac:price", PrioritySpec: "almanac:priority"},
		},
		Reservation: config.Reservation{
			Defaults: planning.Defaults{
				Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete, OnEndChoices: []reservation.OnEnd{reservation.OnEndDelete, reservation.OnEndShelve},
			},
			Fence: filters.FenceAlways, BeforeEnd: 3600, IdempotencyKeyTTL: 24 * time.Hour,
			Rules: upkeep.Rules{
				LeadTime: 15 * 60, Normal: upkeep.OrderWait, Left: upkeep.OrderMigrate, Preemptible: upkeep.OrderDelete, Eviction: 2 * 60,
				EndGrace: 60, Fence: fence.Rules{RootDisk: 20},
			},
		},
		Limits: planning.Limits{Duration: 30 * day, StartAhead: 365 * day, EmptyLeases: 100, Hold: 900, Holds: 3, Waiting: 20},
		Enforcement: config.Enforcement{
			Rules: enforcement.Rules{MaxDuration: -1}, Service: remote.Options{Timeout: 10 * time.Second},
		},
		Lifecycle: config.Lifecycle{PollInterval: time.Second},
		Scheduler: config.Scheduler{Mode: "off", Workers: 64, MaxAttempts: 3, DecisionRetention: 7 * day},
		Filters: config.FilterScheduler{
			EnabledFilters: []string{
				"ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter",
			},
			HostSubsetSize: 1,
			Options: filters.Options{
				DefaultAvailabilityZone: "nova", Available: []string{"nova.scheduler.filters.all_filters"}, MaxIOOpsPerHost: 8, MaxInstancesPerHost: 50,
				RestrictIsolatedHostsToIsolatedImages: true, AggregateImagePropertiesIsolationSeparator: ".",
			},
		},
		Weighers: config.Weighers{
			Classes: []string{"nova.scheduler.weights.all_weighers"},
			Multipliers: map[string]float64{
				"cpu_weight_multiplier": 1, "ram_weight_multiplier": 1, "disk_weight_multiplier": 1, "io_ops_weight_multiplier": -1,
				"build_failure_weight_multiplier": 1e6, "pci_weight_multiplier": 1, "soft_affinity_weight_multiplier": 1,
				"soft_anti_affinity_weight_multiplier": 1, "cross_cell_move_weight_multiplier": 1e6, "metrics_weight_multiplier": 1,
				"hypervisor_version_weight_multiplier": 1, "num_instances_weight_multiplier": 0, "image_props_weight_multiplier": 0,
				"free_time_weight_multiplier": 10, "kw_ranking_weight_multiplier": 1, "overcommit_weight_multiplier": 0,
				"preemption_cost_weight_multiplier": 1e5, "period_weight_multiplier": 0, "preemptible_count_weight_multiplier": 0,
			},
		},
		Healing: config.Healing{Enabled: true, Rules: upkeep.HealingRules{Grace: 60, Window: 3600}},
		Energy:  energyDefaults,
		Blazar:  config.Blazar{Enabled: true, MinutesBeforeEndLease: 60, ListAllForAdmin: true, FreePool: "freepool"},
		BestEffort: config.BestEffort{
			WakeupInterval: 5 * time.Second, MaxVMsPerProject: 100, Retention: 30 * day,
			Rules: besteffort.Rules{
				Suspend: true, Backfilling: besteffort.Aggressive, Promises: 4, Worthwhile: 1,
				Overheads: besteffort.Overheads{SuspendRate: 50, ResumeRate: 50, Boot: 30, Shutdown: 10, Operation: 10},
			},
			Limits: state.Limits{Build: 10 * 60, Order: 2 * 60, Retries: 3, Backoff: 30},
		},
		Packing: config.Packing{
			CPUNeed: "flavor", Yield: filters.Yield{Share: 1}, Preset: rebalance.Options{Migrations: 10, Gain: 0.01},
			Executor: rebalance.ExecutorOptions{Timeout: 10 * 60, MostFailed: 3, Every: 2 * time.Second},
		},
		Glance:  openstack.Options{Interfaces: []string{"internal", "public"}, Timeout: 30 * time.Second},
		Neutron: openstack.Options{Interfaces: []string{"internal", "public"}, Timeout: 30 * time.Second},
		Staging: config.Staging{Enabled: true, RemoveUnused: true, Rules: controller.Rules{
			Strategy: staging.EDF, Rate: 1e8, Margin: 60, Poll: 5 * time.Second, Factor: 3, Retries: 3, RetryDelay: 30, Lifetime: day,
		}},
		Webhooks: webhook.Settings{MostPerProject: 10, GiveUpAfter: day, Source: "almanac"},
		Tariff:   feed.Options{Every: 5 * time.Minute, Timeout: 10 * time.Second, MaxAge: 36 * 3600},
		Tracing:  tracing.Options{Endpoint: "http://127.0.0.1:4318/v1/traces", SampleRatio: 1},
	}
	if diff := cmp.Diff(want, defaults(t), unexported); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestEveryWeigherHasItsMultiplier(t *testing.T) {
	if diff := cmp.Diff(weighers.Multipliers(), defaults(t).Weighers.Multipliers); diff != "" {
		t.Errorf("multipliers (-weighers +configuration):\n%s", diff)
	}
}
