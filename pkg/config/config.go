// SPDX-License-Identifier: Apache-2.0

// Package config reads the configuration of Almanac: oslo-style INI files and
// environment variables in, one Config of plain values out.
//
// One table of options drives parsing, checking, the sample file and the listing
// of the values in effect. Names and meanings follow oslo.config: files are read
// in order and later files win, the environment variable OS_<GROUP>__<OPTION>
// wins over all files, and values may refer to other options, as in $log_dir.
// Unlike oslo.config, an unknown name is an error, unless it is one of the options
// of OpenStack's libraries in foreigns.
//
// Each option is named once: a row of the table binds it to a field of the Options
// of the package that uses it. The ports in these Options are empty; pkg/app
// fills them. The values that an option allows come from that package too, such
// as calendar.Policies.
package config

import (
	"path/filepath"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/tariff/feed"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	"github.com/almanac-cloud/almanac/reservation/webhook"
)

// Config holds the value of every option, one struct per section.
type Config struct {
	Default       Default
	API           API
	NoAuth        NoAuth
	Keystone      Keystone
	Policy        Policy
	Database      Database
	Rabbit        Rabbit
	Notifications Notifications
	Inventory     Inventory
	Reservation   Reservation
	Limits        planning.Limits
	Tariff        feed.Options
	Enforcement   Enforcement
	Lifecycle     Lifecycle
	Healing       Healing
	Nova          Nova
	Placement     openstack.Options
	Preemptible   Preemptible
	Scheduler     Scheduler
	Filters       FilterScheduler
	Weighers      Weighers
	Prefilters    object.Prefilters // of Nova's [scheduler]; its release decides about the others
	Cells         Cells
	Energy        Energy
	Packing       Packing
	BestEffort    BestEffort
	Blazar        Blazar
	Glance        openstack.Options
	Neutron       openstack.Options
	Staging       Staging
	Tracing       tracing.Options
	Webhooks      webhook.Settings

	Origin
}

// Origin is where a configuration was read from, and what of that was not used.
type Origin struct {
	Folder   string    // of the first file read; empty without a file
	Ignored  []Ignored // options of OpenStack's libraries that mean nothing here
	Warnings []string  // sentences about such options without which security or durability may differ
}

// ResolvePath returns where a file named in the configuration lies: a relative path
// starts at the folder of the first configuration file.
func (o Origin) ResolvePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(o.Folder, path)
}

// The roles that a process can have.
const (
	RoleAPI       = "api"
	RoleInventory = "inventory"
	RoleEnergy    = "energy"
)

// Roles are all roles.
var Roles = []string{RoleAPI, RoleInventory, RoleEnergy}

// Default is section [DEFAULT]: logging, roles and the message broker.
type Default struct {
	Debug   bool
	LogFile string
	LogDir  string // with LogFile empty too: standard error
	UseJSON bool

	Roles                   []string
	Host                    string // empty: the machine's own name
	TransportURL            string // may hold passwords; empty: no broker
	ControlExchange         string
	RPCResponseTimeout      time.Duration
	GracefulShutdownTimeout time.Duration
}

// API is section [api]: where the REST API listens, how it authenticates callers
// and how much it accepts from them.
type API struct {
	Host         string
	Port         int // 0: any free port
	AuthStrategy string
	MaxBodyBytes int

	RequestTimeout, DrainDelay time.Duration
	RateLimit, RateBurst       int // requests per second and project, and in one burst; RateLimit 0: no limit
	RequestsAtOnce             int // concurrent requests per project; 0: no limit
	Streams, StreamsPerProject int // of events, at once
	FailureLimit, FailureBurst int // invalid tokens per second and address, and in one burst; FailureLimit 0: no limit
	FeedSecret                 string
	Dashboard                  bool
	ParseProxyHeaders          bool
}

// NoAuth is section [noauth]: the identity of every caller if AuthStrategy is "noauth".
type NoAuth struct {
	ProjectID string
	UserID    string
	Roles     []string
}

// Database is section [database].
type Database struct {
	Connection  string        // an SQLAlchemy URL or a Go one ("file:…"); may hold a password
	BusyTimeout time.Duration // SQLite only; the fields below are for database servers

	MaxPoolSize, MaxOverflow               int
	ConnectionRecycleTime                  time.Duration
	MaxRetries                             int // -1: no limit
	RetryInterval                          time.Duration
	DBMaxRetries                           int // -1: until TransactionTimeout
	DBMaxRetryInterval, TransactionTimeout time.Duration
}

// Inventory is section [inventory]: the source of the hosts.
type Inventory struct {
	Source           string // one of Sources
	HostsFile        string
	RefreshInterval  time.Duration
	FullPollInterval int64                // seconds; openstack only
	Trust            inventory.TrustRules // StaleAfter follows from RefreshInterval
}

// The sources of the hosts.
const (
	SourceFile      = "file"
	SourceOpenStack = "openstack"
	SourceSimulated = "simulated"
)

// Sources lists all sources.
var Sources = []string{SourceFile, SourceOpenStack, SourceSimulated}

// Reservation is section [reservation]: the defaults of requests and the treatment of
// instances before, during and after a reservation.
type Reservation struct {
	Defaults          planning.Defaults
	Fence             filters.Fence
	BeforeEnd         int64 // seconds
	IdempotencyKeyTTL time.Duration
	// Rules has LeadTime for all parts; only the other fields require an OpenStack cloud. Fill
	// and most of Rules.Fence follow from other options.
	Rules   upkeep.Rules
	Flavors []string // of Rules.Fence.Flavors
}

// Lifecycle is section [lifecycle].
type Lifecycle struct {
	PollInterval time.Duration
}
