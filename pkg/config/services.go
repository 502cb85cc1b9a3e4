// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"time"

	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/reservation/notice"
)

// Rabbit is section [oslo_messaging_rabbit]: connections to RabbitMQ and the kinds of queues.
type Rabbit struct {
	amqp.Options
	// Queues are for notifications and the topics of other services. Almanac's own topics always
	// use quorum queues.
	Queues oslo.QueueOptions
}

// Notifications is section [oslo_messaging_notifications].
type Notifications struct {
	Enabled      bool
	Topics       []string
	TransportURL string // may hold a password; empty: [DEFAULT] transport_url
	Formats      []string
}

// Keystone is section [keystone_authtoken]: how Almanac authenticates and validates tokens.
type Keystone struct {
	keystone.Options
	WWWAuthenticateURI string
	AuthType           string
}

// Policy is section [oslo_policy].
type Policy struct {
	File string
	Dirs []string
}

func transportOptions(d *Default) []option {
	return []option{
		subset(&d.Roles, "roles", Roles, Roles,
			"Roles of this process. api: serve REST and carry out the events of reservations. inventory: read the hosts. energy: "+
				"switch hosts off and on according to [energy]; requires api, and only one process is active at a time. A process without "+
				"the role inventory requests the hosts on the topic almanac.inventory, which requires transport_url."),
		text(&d.Host, "host", "",
			"Name of this machine in messages and in the names of replicas. Empty means the hostname."),
		text(&d.TransportURL, "transport_url", "",
			"URL of the message broker, such as rabbit://user:password@host:5672,user:password@host2:5672/virtual_host. Empty "+
				"means none: replicas then communicate through the database only, and no notifications are sent.").asSecret(),
		text(&d.ControlExchange, "control_exchange", "openstack",
			"Exchange for notifications."),
		duration(&d.RPCResponseTimeout, "rpc_response_timeout", time.Minute, time.Second, time.Hour,
			"How long an RPC call waits for its reply."),
		duration(&d.GracefulShutdownTimeout, "graceful_shutdown_timeout", 30*time.Second, 0, time.Hour,
			"How long the process waits at shutdown for requests in progress."),
	}
}

func rabbitOptions(r *Rabbit) []option {
	return append(connectionOptions(&r.Options), rabbitQueueOptions(r)...)
}

func connectionOptions(o *amqp.Options) []option {
	return []option{
		boolean(&o.TLS.Enabled, "ssl", false, "Connect with TLS."),
		text(&o.TLS.CAFile, "ssl_ca_file", "", "PEM file with the CA certificates that may sign the broker's certificate. Empty means the CAs of the system."),
		text(&o.TLS.CertFile, "ssl_cert_file", "", "Client certificate for the broker."),
		text(&o.TLS.KeyFile, "ssl_key_file", "", "Private key of the client certificate."),
		boolean(&o.TLS.VerifyHostname, "ssl_enforce_hostname_verification", true,
			"Verify the name in the broker's certificate too, not only who has signed it. false accepts any name, as older OpenStack services do by default."),
		duration(&o.Heartbeat, "heartbeat_timeout_threshold", time.Minute, time.Second, time.Hour,
			"Time without heartbeats after which a connection counts as lost."),
		duration(&o.RetryInterval, "rabbit_retry_interval", time.Second, time.Second, time.Hour,
			"Wait before the first attempt to reconnect."),
		duration(&o.RetryBackoff, "rabbit_retry_backoff", 2*time.Second, time.Second, time.Hour,
			"Increase of this wait with each attempt."),
		duration(&o.IntervalMax, "rabbit_interval_max", 30*time.Second, time.Second, time.Hour,
			"Maximum wait between two attempts to reconnect."),
	}
}

func rabbitQueueOptions(r *Rabbit) []option {
	q := &r.Queues
	return []option{
		boolean(&q.Durable, "amqp_durable_queues", false,
			"Make notification queues durable. It must be the same as for the services that consume them."),
		boolean(&q.AutoDelete, "amqp_auto_delete", false,
			"Let the broker delete notification queues that no service consumes any more. It must be the same as for the services that "+
				"consume them."),
		boolean(&q.Quorum, "rabbit_quorum_queue", false,
			"Make notification queues quorum queues. It must be the same as for the services that consume them. Almanac's own queues "+
				"always are quorum queues."),
		integer(&q.DeliveryLimit, "rabbit_quorum_delivery_limit", 0, 0, 1_000_000,
			"Maximum number of redeliveries before a quorum queue drops a message. 0 means no limit."),
		integer(&q.MaxMemoryLength, "rabbit_quorum_max_memory_length", 0, 0, math.MaxInt32,
			"Maximum number of messages that a quorum queue keeps in memory. 0 means no limit."),
		integer(&q.MaxMemoryBytes, "rabbit_quorum_max_memory_bytes", 0, 0, math.MaxInt32,
			"Maximum number of bytes of messages that a quorum queue keeps in memory. 0 means no limit."),
		boolean(&q.TransientQuorum, "rabbit_transient_quorum_queue", false,
			"Make reply and fanout queues quorum queues. If [scheduler] mode is not off, it must be the same as in nova.conf: Almanac "+
				"then receives Nova's fanout casts."),
		boolean(&q.StreamFanout, "rabbit_stream_fanout", false,
			"Receive fanout casts from one stream for each topic. If [scheduler] mode is not off, it must be the same as in nova.conf."),
		duration(&q.TransientTTL, "rabbit_transient_queues_ttl", 30*time.Minute, time.Second, 24*day,
			"Time after which the broker deletes an unused reply or fanout queue, and a cast from a stream."),
	}
}

func notificationOptions(n *Notifications) []option {
	return []option{
		named(&n.Enabled, "driver", false, []word[bool]{{"noop", false}, {"messagingv2", true}},
			"messagingv2: send a notification for each change of a reservation. noop: send none. The broker stores notifications "+
				"until a service consumes them."),
		list(&n.Topics, "topics", []string{"notifications"}, "Topics for notifications."),
		text(&n.TransportURL, "transport_url", "",
			"URL of the message broker for notifications. Empty means [DEFAULT] transport_url.").asSecret(),
		subset(&n.Formats, "formats", notice.Formats, notice.Formats,
			"Formats of the notifications. almanac: events reservation.*. blazar: events lease.* in Blazar's format."),
	}
}

func keystoneOptions(k *Keystone) []option {
	return []option{
		text(&k.AuthURL, "auth_url", "", "URL of Keystone, such as https://keystone.example.org:5000/v3."),
		text(&k.WWWAuthenticateURI, "www_authenticate_uri", "",
			"URL of Keystone in responses to callers without a token. Empty means auth_url."),
		choice(&k.AuthType, "auth_type", "password", []string{"password", "v3password", "v3applicationcredential"},
			"How Almanac authenticates: with username and password, or with an application credential."),
		text(&k.Username, "username", "", "Almanac's service user."),
		text(&k.UserID, "user_id", "", "ID of the user, instead of username."),
		text(&k.Password, "password", "", "Password of the user.").asSecret(),
		text(&k.UserDomainID, "user_domain_id", "", "ID of the user's domain. If user_domain_name is empty too, it is default."),
		text(&k.UserDomainName, "user_domain_name", "", "Name of the user's domain."),
		text(&k.ProjectName, "project_name", "", "Project of the user's token, usually service."),
		text(&k.ProjectID, "project_id", "", "ID of the project, instead of project_name."),
		text(&k.ProjectDomainID, "project_domain_id", "", "ID of the project's domain. If project_domain_name is empty too, it is default."),
		text(&k.ProjectDomainName, "project_domain_name", "", "Name of the project's domain."),
		text(&k.SystemScope, "system_scope", "",
			"all: a token of the whole system instead of a project's. For almanac-power beside an Ironic that shows nodes only so; Nova refuses such tokens."),
		text(&k.ApplicationCredentialID, "application_credential_id", "", "ID of the application credential, instead of a password."),
		text(&k.ApplicationCredentialName, "application_credential_name", "", "Name of the application credential, together with username, instead of its ID."),
		text(&k.ApplicationCredentialSecret, "application_credential_secret", "", "Secret of the application credential.").asSecret(),
		text(&k.Region, "region_name", "", "Region of the Keystone endpoint if interface is set."),
		text(&k.Interface, "interface", "",
			"Interface of the Keystone endpoint in the catalog: internal, public or admin. Empty means auth_url."),
		text(&k.CAFile, "cafile", "", "PEM file with the CA certificates that may sign Keystone's certificate. Empty means the CAs of the system."),
		boolean(&k.Insecure, "insecure", false, "Do not verify Keystone's certificate."),
		duration(&k.Timeout, "http_request_timeout", 10*time.Second, time.Second, 5*time.Minute,
			"Time limit for a request to Keystone."),
		duration(&k.TokenCacheTime, "token_cache_time", 5*time.Minute, 0, day,
			"How long the validation of a token is cached."),
		integer(&k.CacheSize, "token_cache_size", 10_000, 1, 10_000_000, "Maximum number of cached token validations; one user's share is a hundredth. The same number of rejected tokens is cached in addition."),
		list(&k.ServiceTokenRoles, "service_token_roles", []string{"service"},
			"A service token must have one of these roles."),
		boolean(&k.ServiceTokenRolesRequired, "service_token_roles_required", true,
			"Refuse a request whose service token has none of these roles."),
	}
}

func policyOptions(p *Policy) []option {
	return []option{
		text(&p.File, "policy_file", "policy.yaml",
			"File with rules that override the defaults; almanacd policy sample prints the defaults. A relative path starts at the "+
				"folder of the first configuration file. The file is optional."),
		list(&p.Dirs, "policy_dirs", []string{"policy.d"}, "Folders with further policy files, read after policy_file."),
	}
}

func apiOptions(a *API) []option {
	return []option{
		text(&a.Host, "host", "127.0.0.1",
			"Address on which the API listens. A process with only the role inventory serves health checks and metrics there."),
		integer(&a.Port, "port", 1234, 0, 65535,
			"Port on which the API listens, different for each process on a machine. 0 means any free port."),
		choice(&a.AuthStrategy, "auth_strategy", "noauth", []string{"noauth", "keystone"},
			"How callers authenticate. keystone: with a Keystone token, see section [keystone_authtoken]. noauth: not at all; "+
				"every caller has the identity in section [noauth]."),
		integer(&a.MaxBodyBytes, "max_body_bytes", 1<<20, 1<<10, 1<<30,
			"Maximum size of a request body in bytes. The response to a larger one is 413. The calls of members have smaller "+
				"limits."),
		duration(&a.RequestTimeout, "request_timeout", 30*time.Second, time.Second, 10*time.Minute,
			"Time limit for a request, after which the response is 503."),
		duration(&a.DrainDelay, "drain_delay", 0, 0, 5*time.Minute,
			"How long, at shutdown, the health check fails while the API still accepts requests: the time that a load balancer "+
				"needs to notice."),
		integer(&a.RateLimit, "rate_limit", 0, 0, 1_000_000,
			"Maximum requests per second and project. 0 means no limit. Admins have no limit."),
		integer(&a.RateBurst, "rate_burst", 100, 1, 1_000_000,
			"Number of requests in a burst that rate_limit allows."),
		integer(&a.RequestsAtOnce, "requests_at_once", 8, 0, 1_000_000,
			"Maximum concurrent requests per project. Up to 256 more wait; the response to further ones is 429. 0 means no limit. "+
				"Admins have no limit."),
		integer(&a.Streams, "streams", 2000, 1, 100_000,
			"Maximum concurrent streams of events (GET /v1/events) at this process. The response to a further one is 503."),
		integer(&a.StreamsPerProject, "streams_per_project", 200, 1, 100_000,
			"Maximum concurrent streams of events per project at this process. The response to a further one is 429."),
		integer(&a.FailureLimit, "failure_limit", 5, 0, 1_000_000,
			"Maximum invalid tokens per second from one IPv4 address or IPv6 /64 network. Above it, requests from there whose token "+
				"is not in the cache have the response 429, without a request to Keystone. 0 means no limit."),
		integer(&a.FailureBurst, "failure_burst", 500, 1, 1_000_000,
			"Number of invalid tokens in a burst that failure_limit allows: more than the number of clients behind one address whose "+
				"tokens expire at the same time."),
		text(&a.FeedSecret, "feed_secret", "",
			"Secret that signs the links to calendar feeds. Changing it invalidates all links. Empty disables the feeds.").asSecret(),
		boolean(&a.Dashboard, "dashboard", true,
			"Serve the page for browsers at /dashboard/. With Keystone, users sign in there; Almanac sends their credentials to Keystone "+
				"and stores nothing."),
	}
}

func serverOptions(d *Database) []option {
	return []option{
		integer(&d.MaxPoolSize, "max_pool_size", 5, 1, 10_000,
			"Number of database connections that are kept open, for reading and for writing each."),
		integer(&d.MaxOverflow, "max_overflow", 50, 0, 10_000, "Number of additional connections at the same time."),
		duration(&d.ConnectionRecycleTime, "connection_recycle_time", time.Hour, time.Second, 30*day,
			"Age at which a connection is replaced."),
		integer(&d.MaxRetries, "max_retries", 10, -1, 1_000_000,
			"Number of attempts to connect at startup. -1 means no limit."),
		duration(&d.RetryInterval, "retry_interval", 10*time.Second, time.Second, time.Hour,
			"Time between two attempts to connect."),
		integer(&d.DBMaxRetries, "db_max_retries", 20, -1, 1_000_000,
			"How often a transaction that the database server aborted, for example after a deadlock, is retried. -1 means until "+
				"transaction_timeout."),
		duration(&d.DBMaxRetryInterval, "db_max_retry_interval", 10*time.Second, time.Second, time.Hour,
			"Maximum time between two attempts of a transaction."),
		duration(&d.TransactionTimeout, "transaction_timeout", 15*time.Second, time.Second, 25*time.Second,
			"Time limit for a transaction with its retries, after which the request fails with 503."),
	}
}
