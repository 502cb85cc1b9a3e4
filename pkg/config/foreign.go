// SPDX-License-Identifier: Apache-2.0

package config

import "slices"

// foreign are options of OpenStack's libraries that Almanac does not have and that may stand in its
// files, because deployment tools write them for every service.
type foreign struct {
	sections []string
	options  []string // none: all of these sections
	why      string   // the option means nothing here, as the rest of a sentence
	// weighs is true if security or durability differs without the option, so that it gets a
	// warning of its own, unless its value is one of harmless.
	weighs   bool
	harmless []string
}

// no are the words for false.
var no = []string{"", "false", "no", "off", "0"}

// clients are the sections for calls to other services.
var clients = []string{"nova", "placement", "glance", "neutron", "ironic"}

// foreigns lists the options by the reason why they mean nothing. The first row with an option
// counts. The names are those of oslo.log, oslo.messaging, oslo.db, oslo.policy, oslo.middleware,
// oslo.service, keystonemiddleware and keystoneauth, from Zed on.
var foreigns = slices.Concat(weightyForeigns, foreignOptions, foreignSections)

var weightyForeigns = []foreign{
	{sections: []string{"oslo_messaging_rabbit"}, options: []string{"rabbit_ha_queues"}, weighs: true, harmless: no,
		why: "Almanac's own queues are quorum queues; notifications are on several brokers only with rabbit_quorum_queue or a policy of the broker"},
	{sections: []string{"oslo_messaging_rabbit"}, options: []string{"ssl_enforce_fips_mode"}, weighs: true, harmless: no,
		why: "Almanac does not demand FIPS mode"},
	{sections: []string{"oslo_messaging_rabbit"}, options: []string{"rabbit_login_method"}, weighs: true, harmless: []string{"plain", "amqplain"},
		why: "Almanac logs in to the broker with user and password"},
	{sections: []string{"database"}, options: []string{"connection_parameters"}, weighs: true, harmless: []string{""},
		why: "write the parameters, such as ssl_ca, behind a ? in connection"},
	{sections: []string{"database"}, options: []string{"mysql_enable_ndb"}, weighs: true, harmless: no,
		why: "Almanac's tables use InnoDB"},
	{sections: []string{"keystone_authtoken"}, options: []string{"auth_section"}, weighs: true, harmless: []string{""},
		why: "write the options of that section into [keystone_authtoken]"},
	{sections: []string{"keystone_authtoken"}, options: []string{"enforce_token_bind"}, weighs: true, harmless: []string{"", "disabled", "permissive"},
		why: "Almanac accepts a bound token like any other"},
	{sections: []string{"keystone_authtoken"}, options: []string{"trust_id", "domain_id", "domain_name", "default_domain_id", "default_domain_name"}, weighs: true, harmless: []string{""},
		why: "Almanac logs in for the project of project_name or project_id, with user_domain_* and project_domain_*"},
	{sections: append([]string{"keystone_authtoken"}, clients...), options: []string{"certfile", "keyfile"}, weighs: true, harmless: []string{""},
		why: "Almanac presents no client certificate"},
	{sections: clients, options: slices.Concat(logins, []string{"auth_section"}), weighs: true, harmless: []string{""},
		why: "Almanac calls all services as the user of [keystone_authtoken]"},
	{sections: []string{"oslo_middleware"}, options: []string{"http_basic_auth_user_file"}, weighs: true, harmless: []string{""},
		why: "Almanac has no basic authentication; callers need a token of Keystone"},
	{sections: []string{"healthcheck"}, options: []string{"disable_by_file_path", "disable_by_file_paths", "enable_by_file_paths"}, weighs: true, harmless: []string{""},
		why: "a file does not change Almanac's health; SIGTERM with [api] drain_delay takes a replica out of a balancer"},
	{sections: []string{"healthcheck"}, options: []string{"allowed_source_ranges", "ignore_proxied_requests"}, weighs: true, harmless: no,
		why: "Almanac answers about its health to everybody who reaches its port"},
	{sections: []string{"ssl"}, weighs: true, harmless: []string{""},
		why: "Almanac's API speaks HTTP; a balancer or proxy in front of it ends TLS"},
	{sections: []string{"audit", "audit_middleware_notifications"}, weighs: true, harmless: []string{""},
		why: "Almanac sends no CADF events; almanacd db trail lists who changed what"},
}

// logins are the options of keystoneauth with which a service logs in.
var logins = []string{
	"auth_type", "auth_url", "username", "user_id", "password", "user_domain_id", "user_domain_name", "project_id", "project_name", "project_domain_id",
	"project_domain_name", "system_scope", "trust_id", "domain_id", "domain_name", "default_domain_id", "default_domain_name", "tenant_id", "tenant_name",
	"application_credential_id", "application_credential_name", "application_credential_secret", "token",
}

// adapters are the options of keystoneauth for calls to a service.
var adapters = []string{
	"service_type", "service_name", "version", "min_version", "max_version", "connect_retries", "connect_retry_delay", "status_code_retries",
	"status_code_retry_delay", "retriable_status_codes", "collect_timing", "split_loggers",
}

var foreignOptions = []foreign{
	{sections: []string{"DEFAULT"}, why: "the log goes to standard error or to log_file, in oslo.log's format or as JSON", options: []string{
		"use_syslog", "syslog_log_facility", "use_journal", "use_stderr", "use_eventlog", "log_config_append", "log_config", "log_date_format", "log_format", "log_color",
		"logging_context_format_string", "logging_default_format_string", "logging_debug_format_suffix", "logging_exception_prefix", "logging_user_identity_format",
		"default_log_levels", "verbose", "publish_errors", "fatal_deprecations", "instance_format", "instance_uuid_format", "log_options",
		"rate_limit_interval", "rate_limit_burst", "rate_limit_except_level",
	}},
	{sections: []string{"DEFAULT"}, why: "logrotate rotates log_file, and SIGHUP reopens it", options: []string{
		"watch_log_file", "log_rotate_interval", "log_rotate_interval_type", "log_rotation_type", "max_logfile_count", "max_logfile_size_mb",
	}},
	{sections: []string{"DEFAULT"}, why: "Almanac chooses its connections and threads itself", options: []string{
		"rpc_backend", "rpc_conn_pool_size", "conn_pool_min_size", "conn_pool_ttl", "executor_thread_pool_size", "rpc_thread_pool_size", "rpc_ping_enabled",
		"backdoor_port", "backdoor_socket", "run_external_periodic_tasks", "api_paste_config", "wsgi_log_format", "wsgi_default_pool_size", "wsgi_keep_alive",
		"wsgi_server_debug", "tcp_keepidle", "max_header_line", "client_socket_timeout",
	}},
	{sections: []string{"DEFAULT"}, why: "other options may refer to it, as in $state_path", options: []string{"state_path", "pybasedir", "bindir", "tempdir", "my_ip", "lock_path"}},
	{sections: []string{"database"}, why: "Almanac sets its sessions itself, and repeats transactions by db_max_retries and transaction_timeout", options: []string{
		"backend", "slave_connection", "asyncio_connection", "asyncio_slave_connection", "synchronous_reader", "sqlite_synchronous", "mysql_sql_mode", "mysql_wsrep_sync_wait",
		"connection_debug", "connection_trace", "pool_timeout", "min_pool_size", "use_tpool", "use_db_reconnect", "db_retry_interval", "db_inc_retry_interval",
	}},
	{sections: []string{"oslo_messaging_rabbit"}, why: "Almanac's own client of RabbitMQ needs no such setting", options: []string{
		"ssl_version", "kombu_reconnect_delay", "kombu_reconnect_splay", "kombu_compression", "kombu_missing_consumer_retry_timeout", "kombu_reconnect_timeout", "kombu_failover_strategy",
		"rabbit_qos_prefetch_count", "heartbeat_rate", "heartbeat_in_pthread", "direct_mandatory_flag", "enable_cancel_on_failover",
		"use_queue_manager", "hostname", "processname", "rpc_conn_pool_size", "conn_pool_min_size", "conn_pool_ttl",
	}},
	{sections: []string{"oslo_messaging_rabbit"}, why: "OpenStack-Helm writes it, and oslo.messaging does not know it either: the option is rabbit_quorum_queue", options: []string{"rabbit_quorum_queues"}},
	{sections: []string{"oslo_messaging_notifications"}, why: "notifications wait in the database until the broker has them", options: []string{"retry", "routing_config"}},
	{sections: []string{"keystone_authtoken"}, why: "Almanac caches tokens in its own memory", options: []string{
		"cache", "memcached_servers", "memcache_servers", "memcache_security_strategy", "memcache_secret_key", "memcache_use_advanced_pool", "memcache_pool_dead_retry",
		"memcache_pool_maxsize", "memcache_pool_socket_timeout", "memcache_pool_unused_timeout", "memcache_pool_conn_get_timeout",
		"memcache_tls_enabled", "memcache_tls_cafile", "memcache_tls_certfile", "memcache_tls_keyfile", "memcache_tls_allowed_ciphers",
		"memcache_sasl_enabled", "memcache_username", "memcache_password",
	}},
	{sections: []string{"keystone_authtoken"}, why: "Almanac validates every token with Keystone's API v3, and its service type is reservation", options: slices.Concat([]string{
		"auth_version", "delay_auth_decision", "include_service_catalog", "http_connect_timeout", "http_request_max_retries",
		"auth_host", "auth_port", "auth_protocol", "auth_admin_prefix", "identity_uri", "admin_token", "admin_user", "admin_password", "admin_tenant_name",
	}, adapters)},
	{sections: clients, why: "Almanac knows the services that it calls, and repeats failed calls", options: adapters},
	{sections: []string{"oslo_policy"}, why: "Almanac's rules have one set of defaults and ask no other server", options: []string{
		"enforce_scope", "enforce_new_defaults", "policy_default_rule", "remote_content_type", "remote_timeout",
		"remote_ssl_verify_server_crt", "remote_ssl_ca_crt_file", "remote_ssl_client_crt_file", "remote_ssl_client_key_file",
	}},
	{sections: []string{"oslo_middleware"}, why: "[api] max_body_bytes limits requests, and X-Forwarded-Proto has the scheme", options: []string{"max_request_body_size", "secure_proxy_ssl_header"}},
}

var foreignSections = []foreign{
	{sections: []string{"oslo_concurrency", "coordination"}, why: "Almanac locks in its database"},
	{sections: []string{"cache"}, why: "Almanac's caches are in its own memory"},
	{sections: []string{"cors"}, why: "Almanac allows no calls from pages of other sites"},
	{sections: []string{"healthcheck"}, why: "Almanac's health and readiness have their own calls"},
	{sections: []string{"oslo_messaging_amqp", "oslo_messaging_kafka", "oslo_messaging_metrics"}, why: "Almanac's only broker is RabbitMQ"},
	{sections: []string{"oslo_limit"}, why: "Almanac's limits are in [limits]"},
	{sections: []string{"service_user"}, why: "Almanac calls other services as itself, not for a user"},
	{sections: []string{"key_manager", "barbican", "barbican_service_user", "vault"}, why: "Almanac stores no keys"},
	{sections: []string{"profiler", "profiler_jaeger", "profiler_otlp"}, why: "Almanac sends traces by the options of [tracing]"},
	{sections: []string{"oslo_reports", "oslo_versionedobjects", "privsep", "os_brick"}, why: "they belong to programs in Python"},
}

// formerNames are names under which oslo.config takes options of today, by section.
var formerNames = map[setting]setting{
	{"default", "logfile"}:                                       {"DEFAULT", "log_file"},
	{"default", "logdir"}:                                        {"DEFAULT", "log_dir"},
	{"default", "notification_driver"}:                           {"oslo_messaging_notifications", "driver"},
	{"default", "notification_topics"}:                           {"oslo_messaging_notifications", "topics"},
	{"default", "notification_transport_url"}:                    {"oslo_messaging_notifications", "transport_url"},
	{"default", "policy_file"}:                                   {"oslo_policy", "policy_file"},
	{"default", "policy_dirs"}:                                   {"oslo_policy", "policy_dirs"},
	{"default", "sql_connection"}:                                {"database", "connection"},
	{"database", "sql_connection"}:                               {"database", "connection"},
	{"database", "idle_timeout"}:                                 {"database", "connection_recycle_time"},
	{"oslo_messaging_rabbit", "rabbit_use_ssl"}:                  {"oslo_messaging_rabbit", "ssl"},
	{"oslo_messaging_rabbit", "kombu_ssl_ca_certs"}:              {"oslo_messaging_rabbit", "ssl_ca_file"},
	{"oslo_messaging_rabbit", "kombu_ssl_certfile"}:              {"oslo_messaging_rabbit", "ssl_cert_file"},
	{"oslo_messaging_rabbit", "kombu_ssl_keyfile"}:               {"oslo_messaging_rabbit", "ssl_key_file"},
	{"oslo_messaging_rabbit", "rabbit_durable_queues"}:           {"oslo_messaging_rabbit", "amqp_durable_queues"},
	{"oslo_messaging_rabbit", "rabbit_quroum_max_memory_length"}: {"oslo_messaging_rabbit", "rabbit_quorum_max_memory_length"},
	{"oslo_messaging_rabbit", "rabbit_quroum_max_memory_bytes"}:  {"oslo_messaging_rabbit", "rabbit_quorum_max_memory_bytes"},
	{"keystone_authtoken", "auth_plugin"}:                        {"keystone_authtoken", "auth_type"},
	{"keystone_authtoken", "auth_uri"}:                           {"keystone_authtoken", "www_authenticate_uri"},
	{"keystone_authtoken", "user_name"}:                          {"keystone_authtoken", "username"},
	{"keystone_authtoken", "tenant_name"}:                        {"keystone_authtoken", "project_name"},
	{"keystone_authtoken", "tenant_id"}:                          {"keystone_authtoken", "project_id"},
	{"nova", "interface"}:                                        {"nova", "valid_interfaces"},
	{"placement", "interface"}:                                   {"placement", "valid_interfaces"},
	{"glance", "interface"}:                                      {"glance", "valid_interfaces"},
	{"neutron", "interface"}:                                     {"neutron", "valid_interfaces"},
	{"ironic", "interface"}:                                      {"ironic", "valid_interfaces"},
}
