package config

import (
	"math"
	"time"
)

// Rabbit is section [oslo_messaging_rabbit]: how RabbitMQ is used.
type Rabbit struct {
	SSL                bool
	SSLCAFile          string
	SSLCertFile        string
	SSLKeyFile         string
	HeartbeatThreshold time.Duration
	RetryInterval      time.Duration
	RetryBackoff       time.Duration
	IntervalMax        time.Duration
	DurableQueues      bool // of notifications and of other services' topics
	QuorumQueue        bool // likewise; Almanac's own topics always have quorum queues
	TransientQuorum    bool // of the queues of one process
	StreamFanout       bool
	DeliveryLimit      int
	MaxMemoryLength    int
	MaxMemoryBytes     int
	TransientTTL       time.Duration
}

// Notifications is section [oslo_messaging_notifications].
type Notifications struct {
	Driver       string // "noop" or "messagingv2"
	Topics       []string
	TransportURL string // may hold a password; empty: that of [DEFAULT]
	Formats      []string
}

// Keystone is section [keystone_authtoken]: how Almanac asks Keystone.
type Keystone struct {
	AuthURL, WWWAuthenticateURI  string
	Username, UserID, Password   string
	UserDomainID, UserDomainName string
	ProjectName, ProjectID       string
	ProjectDomainID              string
	ProjectDomainName            string
	ApplicationCredentialID      string
	ApplicationCredentialName    string
	ApplicationCredentialSecret  string
	RegionName, Interface        string
	CAFile                       string
	Insecure                     bool
	TokenCacheTime, HTTPTimeout  time.Duration
	TokenCacheSize               int
	ServiceTokenRoles            []string
	ServiceTokenRolesRequired    bool
	AuthType                     string
}

// Policy is section [oslo_policy].
type Policy struct {
	File string
	Dirs []string
}

func transportOptions(d *Default) []option {
	return []option{
		list(&d.Roles, "roles", []string{"api", "inventory", "energy"},
			"What this process does: api serves REST and carries out events, inventory reads the hosts, energy switches "+
				"hosts off and on as [energy] says, and takes api; of several processes one does at a time. A process "+
				"that does not have the inventory asks for it on topic almanac.inventory; transport_url is needed then."),
		text(&d.Host, "host", "",
			"Name of this machine, in messages and in the names of replicas. Empty means its own name."),
		text(&d.TransportURL, "transport_url", "",
			"The message broker, as rabbit://user:password@host:5672,user:password@host2:5672/virtual_host. Empty "+
				"means none: replicas then learn of each other from the database alone, and nobody is notified.").asSecret(),
		text(&d.ControlExchange, "control_exchange", "openstack",
			"Exchange of the notifications."),
		duration(&d.RPCResponseTimeout, "rpc_response_timeout", time.Minute, time.Second, time.Hour,
			"How long a call over the message broker waits for its answer."),
		duration(&d.GracefulShutdownTimeout, "graceful_shutdown_timeout", 30*time.Second, 0, time.Hour,
			"How long a stop waits for what is under way."),
	}
}

func rabbitOptions(r *Rabbit) []option {
	return append(connectionOptions(r), rabbitQueueOptions(r)...)
}

func connectionOptions(r *Rabbit) []option {
	return []option{
		boolean(&r.SSL, "ssl", false, "Connect with TLS."),
		text(&r.SSLCAFile, "ssl_ca_file", "", "Authorities that may sign the broker's certificate. Empty means the system's."),
		text(&r.SSLCertFile, "ssl_cert_file", "", "Certificate shown to the broker."),
		text(&r.SSLKeyFile, "ssl_key_file", "", "Key of that certificate."),
		duration(&r.HeartbeatThreshold, "heartbeat_timeout_threshold", time.Minute, time.Second, time.Hour,
			"How long a silent connection is believed in."),
		duration(&r.RetryInterval, "rabbit_retry_interval", time.Second, time.Second, time.Hour,
			"How long after the first failed attempt to connect the second is made."),
		duration(&r.RetryBackoff, "rabbit_retry_backoff", 2*time.Second, time.Second, time.Hour,
			"By how much that time grows with each attempt."),
		duration(&r.IntervalMax, "rabbit_interval_max", 30*time.Second, time.Second, time.Hour,
			"Longest time between two attempts to connect."),
	}
}

func rabbitQueueOptions(r *Rabbit) []option {
	return []option{
		boolean(&r.DurableQueues, "amqp_durable_queues", false,
			"The queues of notifications outlive the broker. It has to be as for the services that read them."),
		boolean(&r.QuorumQueue, "rabbit_quorum_queue", false,
			"The queues of notifications are quorum queues, likewise. Almanac's own queues always are."),
		integer(&r.DeliveryLimit, "rabbit_quorum_delivery_limit", 0, 0, 1_000_000,
			"How often a quorum queue delivers a message again before it drops it. 0 means no limit."),
		integer(&r.MaxMemoryLength, "rabbit_quorum_max_memory_length", 0, 0, math.MaxInt32,
			"How many messages a quorum queue keeps in memory. 0 means no limit."),
		integer(&r.MaxMemoryBytes, "rabbit_quorum_max_memory_bytes", 0, 0, math.MaxInt32,
			"How many bytes of messages a quorum queue keeps in memory. 0 means no limit."),
		boolean(&r.TransientQuorum, "rabbit_transient_quorum_queue", false,
			"The queues for replies and for casts to everybody are quorum queues. It has to be as for Nova, whose casts "+
				"Almanac follows with [scheduler] mode."),
		boolean(&r.StreamFanout, "rabbit_stream_fanout", false,
			"Casts to everybody are in a stream. Almanac does not read streams: true is refused."),
		duration(&r.TransientTTL, "rabbit_transient_queues_ttl", 30*time.Minute, time.Second, 24*day,
			"How long a queue that nobody uses stays."),
	}
}

func notificationOptions(n *Notifications) []option {
	return []option{
		choice(&n.Driver, "driver", "noop", []string{"noop", "messagingv2"},
			"messagingv2 sends a notification for each change of a reservation; noop sends none. Somebody should "+
				"read them: the broker keeps them until then."),
		list(&n.Topics, "topics", []string{"notifications"}, "Topics that notifications are sent on."),
		text(&n.TransportURL, "transport_url", "",
			"Broker for notifications, where it is not that of [DEFAULT].").asSecret(),
		list(&n.Formats, "formats", []string{"almanac", "blazar"},
			"Which event types are sent: almanac has reservation.*, blazar has lease.* in the form that Blazar gives them."),
	}
}

func keystoneOptions(k *Keystone) []option {
	return []option{
		text(&k.AuthURL, "auth_url", "", "Address of Keystone, as in https://keystone.example.org:5000/v3."),
		text(&k.WWWAuthenticateURI, "www_authenticate_uri", "",
			"Address of Keystone that callers without a token are pointed to. Empty means auth_url."),
		choice(&k.AuthType, "auth_type", "password", []string{"password", "v3password", "v3applicationcredential"},
			"How Almanac logs in: with username and password, or with an application credential."),
		text(&k.Username, "username", "", "Almanac's own user."),
		text(&k.UserID, "user_id", "", "Its id, instead of username."),
		text(&k.Password, "password", "", "Its password.").asSecret(),
		text(&k.UserDomainID, "user_domain_id", "", "Domain of the user. Empty is default, where user_domain_name is empty too."),
		text(&k.UserDomainName, "user_domain_name", "", "Name of that domain."),
		text(&k.ProjectName, "project_name", "", "Project that the user logs in to, mostly service."),
		text(&k.ProjectID, "project_id", "", "Its id, instead of project_name."),
		text(&k.ProjectDomainID, "project_domain_id", "", "Domain of the project. Empty is default, where project_domain_name is empty too."),
		text(&k.ProjectDomainName, "project_domain_name", "", "Name of that domain."),
		text(&k.ApplicationCredentialID, "application_credential_id", "", "Application credential, instead of a password."),
		text(&k.ApplicationCredentialName, "application_credential_name", "", "Its name, beside username, instead of its id."),
		text(&k.ApplicationCredentialSecret, "application_credential_secret", "", "Its secret.").asSecret(),
		text(&k.RegionName, "region_name", "", "Region whose Keystone is asked, where interface is set."),
		text(&k.Interface, "interface", "",
			"Which of Keystone's endpoints in the catalog is asked: internal, public or admin. Empty means auth_url itself."),
		text(&k.CAFile, "cafile", "", "Authorities that may sign Keystone's certificate. Empty means the system's."),
		boolean(&k.Insecure, "insecure", false, "Do not verify Keystone's certificate."),
		duration(&k.HTTPTimeout, "http_request_timeout", 10*time.Second, time.Second, 5*time.Minute,
			"How long a question to Keystone may take."),
		duration(&k.TokenCacheTime, "token_cache_time", 5*time.Minute, 0, day,
			"How long what Keystone said of a token is believed without asking again."),
		integer(&k.TokenCacheSize, "token_cache_size", 10_000, 1, 10_000_000, "Of how many tokens that is remembered, a hundredth of them of one user, and of as many that it rejected."),
		list(&k.ServiceTokenRoles, "service_token_roles", []string{"service"},
			"Roles of which a service token must have one."),
		boolean(&k.ServiceTokenRolesRequired, "service_token_roles_required", true,
			"A service token without such a role is refused."),
	}
}

func policyOptions(p *Policy) []option {
	return []option{
		text(&p.File, "policy_file", "policy.yaml",
			"File with rules that replace the defaults; almanacd policy sample prints them. A relative path is "+
				"looked for beside the first configuration file. It need not be there."),
		list(&p.Dirs, "policy_dirs", []string{"policy.d"}, "Folders of such files, read after it."),
	}
}

func apiOptions(a *API) []option {
	return []option{
		text(&a.Host, "host", "127.0.0.1",
			"Address that the API listens on; with the role inventory alone, its health check and metrics."),
		integer(&a.Port, "port", 1234, 0, 65535,
			"Port there, another one for each process of a machine. 0 takes any free one."),
		choice(&a.AuthStrategy, "auth_strategy", "noauth", []string{"noauth", "keystone"},
			"How callers are told apart: by their Keystone token, see section [keystone_authtoken]. With noauth "+
				"every caller is the one of section [noauth]."),
		integer(&a.MaxBodyBytes, "max_body_bytes", 1<<20, 1<<10, 1<<30,
			"Largest request body that is read, in bytes. A larger one is answered with 413. What members send has "+
				"smaller bounds of its own."),
		duration(&a.RequestTimeout, "request_timeout", 30*time.Second, time.Second, 10*time.Minute,
			"How long the answer to a request may take before it is 503."),
		duration(&a.DrainDelay, "drain_delay", 0, 0, 5*time.Minute,
			"How long, at a stop, the health check says so before no more requests are taken: as long as a "+
				"balancer needs to notice."),
		integer(&a.RateLimit, "rate_limit", 0, 0, 1_000_000,
			"Requests per second that a project may send. 0 means no limit. Admins have none."),
		integer(&a.RateBurst, "rate_burst", 100, 1, 1_000_000,
			"Requests that a project may send at once before the rate limit counts."),
		integer(&a.RequestsAtOnce, "requests_at_once", 8, 0, 1_000_000,
			"Requests of a project that are served at the same time. Up to 256 more wait in line, and those beyond "+
				"are answered with 429. 0 means no limit. Admins have none."),
		integer(&a.FailureLimit, "failure_limit", 5, 0, 1_000_000,
			"Wrong tokens per second that an address may send, or the network of 64 bits of an IPv6 address. "+
				"Above that, requests from there with a token that Keystone has to be asked about are answered "+
				"with 429, and it is not asked. 0 means no limit."),
		integer(&a.FailureBurst, "failure_burst", 500, 1, 1_000_000,
			"Wrong tokens that an address may send at once before the failure limit counts: more than there are "+
				"clients behind one address whose tokens end at the same time."),
		text(&a.FeedSecret, "feed_secret", "",
			"Text of which the links to calendar feeds are made. All links are void when it changes. Empty means "+
				"that there are no links.").asSecret(),
	}
}

func serverOptions(d *Database) []option {
	return []option{
		integer(&d.MaxPoolSize, "max_pool_size", 5, 1, 10_000,
			"Connections to a database server that are kept open, for each of reading and writing."),
		integer(&d.MaxOverflow, "max_overflow", 50, 0, 10_000, "How many more there may be at once."),
		duration(&d.ConnectionRecycleTime, "connection_recycle_time", time.Hour, time.Second, 30*day,
			"Age at which a connection is replaced."),
		integer(&d.MaxRetries, "max_retries", 10, -1, 1_000_000,
			"How often it is tried to connect at the start. -1 means without end."),
		duration(&d.RetryInterval, "retry_interval", 10*time.Second, time.Second, time.Hour,
			"Time between two such attempts."),
		integer(&d.DBMaxRetries, "db_max_retries", 20, -1, 1_000_000,
			"How often a transaction is run again that the database server has given up, as after a deadlock. -1 "+
				"means as often as transaction_timeout allows."),
		duration(&d.DBMaxRetryInterval, "db_max_retry_interval", 10*time.Second, time.Second, time.Hour,
			"Longest time between two such runs."),
		duration(&d.TransactionTimeout, "transaction_timeout", 15*time.Second, time.Second, 25*time.Second,
			"How long a transaction is tried before the request fails with 503."),
	}
}
