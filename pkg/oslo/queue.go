// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"cmp"
	"fmt"
	"time"
)

// ExchangeKind is how an exchange routes messages.
type ExchangeKind string

// The kinds in use. Topic routes to the queues bound with the same key (Almanac uses no
// wildcards), Fanout to all bound queues.
const (
	Topic  ExchangeKind = "topic"
	Fanout ExchangeKind = "fanout"
)

// Exchange is the declaration of an exchange. The one without a name is the broker's default: it
// routes to the queue named by the key and is never declared.
type Exchange struct {
	Name       string
	Kind       ExchangeKind
	Durable    bool
	AutoDelete bool
}

// Queue is the declaration and binding of a queue.
type Queue struct {
	Name       string
	Exchange   Exchange
	Key        string
	Durable    bool
	AutoDelete bool
	Args       map[string]any
	// Temporary marks the queue of one process: closing its Subscription deletes it.
	Temporary bool
	// Stream marks a log that all listeners share: each reads what arrives after it subscribes, and
	// after a lost connection may read some messages again.
	Stream bool
}

// QueueOptions are the arguments of declarations of exchanges and queues; the names in the
// comments are those of [oslo_messaging_rabbit]. They must equal those of the other services that
// use the queue, or the broker refuses the declaration. The zero value is oslo's default.
type QueueOptions struct {
	Durable       bool          // amqp_durable_queues
	AutoDelete    bool          // amqp_auto_delete
	Quorum        bool          // rabbit_quorum_queue; implies Durable
	DeliveryLimit int           // rabbit_quorum_delivery_limit; 0 means no limit
	TransientTTL  time.Duration // rabbit_transient_queues_ttl; 0 is 30 minutes
	// TransientQuorum is rabbit_transient_quorum_queue: the queues of one process are quorum
	// queues too, and fanout exchanges survive a restart of the broker.
	TransientQuorum bool
	// StreamFanout is rabbit_stream_fanout: the fanout casts of a topic are in one stream, which keeps
	// them for TransientTTL.
	StreamFanout bool
	// TransientFanout keeps fanout exchanges transient beside TransientQuorum. oslo has no such option.
	TransientFanout bool
	// Leave leaves the queues of one process to their TTL, as oslo does. Otherwise they are
	// deleted with the process, and a fanout exchange with the last of its queues, after which
	// oslo's senders fail: they declare an exchange only once.
	Leave bool
	// MaxMemoryLength and MaxMemoryBytes are rabbit_quorum_max_memory_length and
	// rabbit_quorum_max_memory_bytes; 0 means no limit.
	MaxMemoryLength, MaxMemoryBytes int
}

// OwnQueues are the options of Almanac's own topics. All their queues are quorum queues: RabbitMQ can
// refuse queues that are transient and not exclusive. Their fanout exchanges stay transient, as
// earlier Almanacs declare them, since the broker refuses two declarations of one exchange that
// differ.
var OwnQueues = QueueOptions{Quorum: true, TransientQuorum: true, TransientFanout: true}

const defaultTransientTTL = 30 * time.Minute

func (o QueueOptions) topicExchange(name string) Exchange {
	return Exchange{Name: name, Kind: Topic, Durable: o.Durable || o.Quorum, AutoDelete: o.AutoDelete}
}

// topicQueue returns the queue bound to exchange with key; its name is the key if name is empty.
func (o QueueOptions) topicQueue(exchange, key, name string) Queue {
	q := Queue{
		Name:       cmp.Or(name, key),
		Exchange:   o.topicExchange(exchange),
		Key:        key,
		Durable:    o.Durable || o.Quorum,
		AutoDelete: o.AutoDelete,
	}
	if o.Quorum {
		q.Args = o.quorum()
	}
	return q
}

// quorum returns the arguments of a quorum queue.
func (o QueueOptions) quorum() map[string]any {
	args := map[string]any{"x-queue-type": "quorum"}
	for name, n := range map[string]int{
		"x-delivery-limit": o.DeliveryLimit, "x-max-in-memory-length": o.MaxMemoryLength, "x-max-in-memory-bytes": o.MaxMemoryBytes,
	} {
		if n > 0 {
			args[name] = int32(n)
		}
	}
	return args
}

const (
	// ownTTL is how long a listener's own queue exists after the listener's death.
	ownTTL = 5 * time.Minute
	// ownLength bounds the messages in it; the broker drops the oldest first.
	ownLength = 10_000
)

// ownQueue returns the private queue of one listener, bound to exchange with key. It has a limit
// and a short life, because publishers fill it even if nothing reads it. Its name is unique, so no
// other process declares it with different arguments.
func (o QueueOptions) ownQueue(exchange, key, name string) Queue {
	o.TransientTTL = min(cmp.Or(o.TransientTTL, ownTTL), ownTTL)
	q := o.transient(Queue{Name: name + "." + key, Exchange: o.topicExchange(exchange), Key: key})
	q.Args["x-max-length"] = int32(ownLength)
	return q
}

// fanoutExchange is durable only for quorum queues and streams, whatever Durable is, as in oslo,
// unless TransientFanout is set.
func (o QueueOptions) fanoutExchange(topic string) Exchange {
	durable := (o.TransientQuorum || o.StreamFanout) && !o.TransientFanout
	return Exchange{Name: topic + "_fanout", Kind: Fanout, Durable: durable, AutoDelete: true}
}

// fanoutQueue returns the queue on which one process receives what is sent to all: of its own, or a
// stream that all share.
func (o QueueOptions) fanoutQueue(topic, unique string) Queue {
	if o.StreamFanout {
		age := cmp.Or(o.TransientTTL, defaultTransientTTL)
		return Queue{
			Name: topic + "_fanout", Exchange: o.fanoutExchange(topic), Key: topic, Durable: true, Stream: true,
			Args: map[string]any{"x-queue-type": "stream", "x-max-age": fmt.Sprintf("%ds", int(age.Seconds()))},
		}
	}
	return o.transient(Queue{Name: topic + "_fanout_" + unique, Exchange: o.fanoutExchange(topic), Key: topic})
}

func (o QueueOptions) replyQueue(unique string) Queue {
	return o.transient(Queue{Name: "reply_" + unique})
}

// transient returns q as a queue that ends with its process, or a while after it.
func (o QueueOptions) transient(q Queue) Queue {
	ttl := cmp.Or(o.TransientTTL, defaultTransientTTL)
	q.Args = map[string]any{}
	if o.TransientQuorum {
		q.Durable, q.Args = true, o.quorum()
	}
	q.Args["x-expires"], q.Temporary = int32(ttl.Milliseconds()), !o.Leave
	return q
}
