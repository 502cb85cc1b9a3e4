// Package oslo speaks oslo.messaging 2.0, the messages by which OpenStack's
// services call and notify each other: RPC servers and clients, fanout casts,
// notifications and their listeners.
//
// What is here is the protocol. A Transport carries its bytes: pkg/oslo/amqp
// over RabbitMQ, pkg/oslo/memory inside one process; pkg/oslo/oslotest holds
// both to the same behaviour. Names of exchanges and queues, their arguments
// and the bodies are those of oslo_messaging/_drivers/{impl_rabbit,amqpdriver,
// amqp,common}.py, so that Python services are peers without knowing it.
//
// A request is acknowledged once a worker is free for it and before the work,
// as oslo does: it is served at most once, and a caller whose server dies
// learns it by its timeout. Served-at-least-once would repeat calls that are
// not idempotent, select_destinations among them. A notification is
// acknowledged after the work, so it is handled at least once.
package oslo
