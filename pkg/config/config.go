// Package config reads the configuration of Almanac: oslo-style INI files and
// environment variables in, one Config of plain values out.
//
// One table of options is the source of parsing, checking, the sample file and
// the listing of what is in effect. Names and meanings are those of oslo.config
// where it has them: files in order, later ones win, and the environment
// variable OS_<GROUP>__<OPTION> wins over all files. Unlike oslo.config, it
// takes a name that it does not know for an error.
//
// The package knows nothing of the rooms that it configures; pkg/app hands the
// values on.
package config

import (
	"path/filepath"
	"time"
)

// Config holds the value of every option, one struct for each section.
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
	Limits        Limits
	Lifecycle     Lifecycle
	Healing       Healing
	Nova          Nova
	Placement     Client
	Preemptible   Preemptible
	Scheduler     Scheduler
	Filters       FilterScheduler
	Weighers      Weighers
	Prefilters    Prefilters
	Cells         Cells
	Energy        Energy
	Packing       Packing
	BestEffort    BestEffort
	Glance        Client
	Staging       Staging

	Folder string // of the first file that was read; empty without one
}

// Beside gives where a file lies that the configuration names: a relative path
// begins at the folder of the first configuration file.
func (c Config) Beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Folder, path)
}

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

// API is section [api]: where the REST API listens and whom it believes.
type API struct {
	Host         string
	Port         int // 0: any free port
	AuthStrategy string
	MaxBodyBytes int

	RequestTimeout, DrainDelay time.Duration
	RateLimit, RateBurst       int // requests per second of a project, and at once; 0 is no limit
	RequestsAtOnce             int // of a project that are served at the same time; 0 is no limit
	FailureLimit, FailureBurst int // wrong tokens per second of an address, and at once; 0 is no limit
	FeedSecret                 string
	ParseProxyHeaders          bool
}

// NoAuth is section [noauth]: who every caller is where AuthStrategy is "noauth".
type NoAuth struct {
	ProjectID string
	UserID    string
	Roles     []string
}

// Database is section [database].
type Database struct {
	Connection  string        // an SQLAlchemy URL or a Go one ("file:…"); may hold a password
	BusyTimeout time.Duration // of SQLite; the rest is for servers

	MaxPoolSize, MaxOverflow               int
	ConnectionRecycleTime                  time.Duration
	MaxRetries                             int // -1: without end
	RetryInterval                          time.Duration
	DBMaxRetries                           int // -1: as often as time allows
	DBMaxRetryInterval, TransactionTimeout time.Duration
}

// Inventory is section [inventory]: where the hosts come from.
type Inventory struct {
	Source           string // "file" or "openstack"
	HostsFile        string
	RefreshInterval  time.Duration
	FullPollInterval time.Duration // of openstack
	MaxChangePercent int
	SettleTime       time.Duration
}

// Reservation is section [reservation]: what holds where a request says nothing.
type Reservation struct {
	DefaultPolicy     string
	Fence             string // "always" or "lead_time"
	LeadTime          time.Duration
	BeforeEnd         time.Duration
	OnEnd             string   // "delete", "stop", "shelve" or "leave"
	OnEndChoices      []string // OnEnd is among them
	IdempotencyKeyTTL time.Duration

	// Of a cloud:
	RunningInstances     string // "wait" or "migrate"
	EndedInstances       string // "migrate", "shelve", "delete" or "wait"
	PreemptibleInstances string // "delete", "shelve", "migrate" or "wait"
	EvictionTime         time.Duration
	EndGrace             time.Duration
	RootDisk             int // GB; 0 is the whole host's
	Flavors              []string
}

// Limits is section [limits]. Zero is no limit, in every field.
type Limits struct {
	MaxDuration            time.Duration
	MaxStartAhead          time.Duration
	MaxHostsPerProject     int
	MaxHostHoursPerProject int
	ExtensionWindow        time.Duration
}

// Lifecycle is section [lifecycle].
type Lifecycle struct {
	PollInterval time.Duration
}
