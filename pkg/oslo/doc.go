// SPDX-License-Identifier: Apache-2.0

// Package oslo implements oslo.messaging 2.0, the messages between OpenStack's services: RPC
// servers and clients, fanout casts, notifications and their listeners.
//
// This package contains the protocol. A Transport carries its bytes: pkg/oslo/amqp over RabbitMQ,
// and for tests tests/oslotest/memory inside one process; tests/oslotest tests that both
// behave alike. Names of exchanges and queues, their arguments and the bodies are those of
// oslo_messaging/_drivers/{impl_rabbit,amqpdriver,amqp,common}.py, so that Python services are
// compatible peers.
//
// A request is acknowledged once a worker is free for it and before the work, as in oslo: it is
// served at most once, and if its server dies, its caller gets a timeout. To serve it at least
// once would repeat calls that are not idempotent, such as select_destinations. A notification is
// acknowledged after the work, so it is handled at least once.
package oslo
