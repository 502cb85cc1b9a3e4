package oslo

import (
	"cmp"
	"time"
)

// ExchangeKind is how an exchange routes.
type ExchangeKind string

// The kinds in use. Topic routes to the queues bound with the same key (keys
// with wildcards are not used), Fanout to all bound queues.
const (
	Topic  ExchangeKind = "topic"
	Fanout ExchangeKind = "fanout"
)

// Exchange is an exchange as it is declared. The one without a name is the
// broker's own: it routes to the queue named by the key and is never declared.
type Exchange struct {
	Name       string
	Kind       ExchangeKind
	Durable    bool
	AutoDelete bool
}

// Queue is a queue as it is declared and bound.
type Queue struct {
	Name       string
	Exchange   Exchange
	Key        string
	Durable    bool
	AutoDelete bool
	Args       map[string]any
	// Temporary marks the queue of one process: it is deleted when its
	// Subscription is closed.
	Temporary bool
}

// QueueOptions say how exchanges and queues are declared; the names in the
// comments are those of [oslo_messaging_rabbit]. They have to be those of the
// other services on the same queue, or the broker refuses the declaration.
// The zero value is oslo's default.
type QueueOptions struct {
	Durable       bool          // amqp_durable_queues
	AutoDelete    bool          // amqp_auto_delete
	Quorum        bool          // rabbit_quorum_queue; implies Durable
	DeliveryLimit int           // rabbit_quorum_delivery_limit; 0 sets none
	TransientTTL  time.Duration // rabbit_transient_queues_ttl; 0 is 30 minutes
	// TransientQuorum is rabbit_transient_quorum_queue: the queues of one process are
	// quorum queues too, and fanout exchanges outlive the broker.
	TransientQuorum bool
	// Leave has the queues of one process left to their TTL, as oslo does it. Else they
	// are deleted with it, and a fanout exchange with the last of its queues: oslo's
	// senders, which declare an exchange once, fail then.
	Leave bool
	// MaxMemoryLength and MaxMemoryBytes are rabbit_quorum_max_memory_length and
	// rabbit_quorum_max_memory_bytes; 0 sets none.
	MaxMemoryLength, MaxMemoryBytes int
}

const defaultTransientTTL = 30 * time.Minute

func (o QueueOptions) topicExchange(name string) Exchange {
	return Exchange{Name: name, Kind: Topic, Durable: o.Durable || o.Quorum, AutoDelete: o.AutoDelete}
}

// topicQueue is the queue bound to exchange with key; its name is the key
// unless name is given.
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

// quorum gives the arguments of a quorum queue.
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
	// ownTTL is how long the queue of a listener lasts that has died.
	ownTTL = 5 * time.Minute
	// ownLength bounds what lies in it; the oldest messages go first.
	ownLength = 10_000
)

// ownQueue is the queue of one listener, bound to exchange with key. The publishers fill it
// whether somebody reads it or not, so that it has a limit and a short life. Its name is
// unique: no other process declares it with other arguments.
func (o QueueOptions) ownQueue(exchange, key, name string) Queue {
	o.TransientTTL = min(cmp.Or(o.TransientTTL, ownTTL), ownTTL)
	q := o.transient(Queue{Name: name + "." + key, Exchange: o.topicExchange(exchange), Key: key})
	q.Args["x-max-length"] = int32(ownLength)
	return q
}

// fanoutExchange is durable for quorum queues only, whatever Durable says, as oslo has it.
func (o QueueOptions) fanoutExchange(topic string) Exchange {
	return Exchange{Name: topic + "_fanout", Kind: Fanout, Durable: o.TransientQuorum, AutoDelete: true}
}

func (o QueueOptions) fanoutQueue(topic, unique string) Queue {
	return o.transient(Queue{Name: topic + "_fanout_" + unique, Exchange: o.fanoutExchange(topic), Key: topic})
}

func (o QueueOptions) replyQueue(unique string) Queue {
	return o.transient(Queue{Name: "reply_" + unique})
}

func (o QueueOptions) transient(q Queue) Queue {
	ttl := cmp.Or(o.TransientTTL, defaultTransientTTL)
	q.Args = map[string]any{}
	if o.TransientQuorum {
		q.Durable, q.Args = true, o.quorum()
	}
	q.Args["x-expires"], q.Temporary = int32(ttl.Milliseconds()), !o.Leave
	return q
}
