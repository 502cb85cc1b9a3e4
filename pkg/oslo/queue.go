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
		q.Args = map[string]any{"x-queue-type": "quorum"}
		if o.DeliveryLimit > 0 {
			q.Args["x-delivery-limit"] = int32(o.DeliveryLimit)
		}
	}
	return q
}

// ownQueue is the queue of one listener, bound to exchange with key.
func (o QueueOptions) ownQueue(exchange, key, name string) Queue {
	return o.transient(Queue{Name: name + "." + key, Exchange: o.topicExchange(exchange), Key: key})
}

// fanoutExchange ignores the options, as oslo does.
func fanoutExchange(topic string) Exchange {
	return Exchange{Name: topic + "_fanout", Kind: Fanout, AutoDelete: true}
}

func (o QueueOptions) fanoutQueue(topic, unique string) Queue {
	return o.transient(Queue{Name: topic + "_fanout_" + unique, Exchange: fanoutExchange(topic), Key: topic})
}

func (o QueueOptions) replyQueue(unique string) Queue {
	return o.transient(Queue{Name: "reply_" + unique})
}

func (o QueueOptions) transient(q Queue) Queue {
	ttl := cmp.Or(o.TransientTTL, defaultTransientTTL)
	q.Args = map[string]any{"x-expires": int32(ttl.Milliseconds())}
	q.Temporary = true
	return q
}
