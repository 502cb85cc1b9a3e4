// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// queueOptions are the options for queues that a transport_url may contain after its question
// mark, with their parsers.
var queueOptions = map[string]func(o *QueueOptions, value string) error{
	"amqp_durable_queues": func(o *QueueOptions, value string) (err error) {
		o.Durable, err = ParseBool(value)
		return err
	},
	"amqp_auto_delete": func(o *QueueOptions, value string) (err error) {
		o.AutoDelete, err = ParseBool(value)
		return err
	},
	"rabbit_quorum_queue": func(o *QueueOptions, value string) (err error) {
		o.Quorum, err = ParseBool(value)
		return err
	},
	"rabbit_transient_quorum_queue": func(o *QueueOptions, value string) (err error) {
		o.TransientQuorum, err = ParseBool(value)
		return err
	},
	"rabbit_stream_fanout": func(o *QueueOptions, value string) (err error) {
		o.StreamFanout, err = ParseBool(value)
		return err
	},
	"rabbit_quorum_delivery_limit":    number(func(o *QueueOptions) *int { return &o.DeliveryLimit }),
	"rabbit_quorum_max_memory_length": number(func(o *QueueOptions) *int { return &o.MaxMemoryLength }),
	"rabbit_quorum_max_memory_bytes":  number(func(o *QueueOptions) *int { return &o.MaxMemoryBytes }),
	"rabbit_transient_queues_ttl": func(o *QueueOptions, value string) error {
		n, err := strconv.ParseUint(value, 10, 21) // in milliseconds it must fit into 31 bits
		o.TransientTTL = time.Duration(n) * time.Second
		return err
	},
}

// number returns the parser of an option that is a number of at most 31 bits.
func number(of func(o *QueueOptions) *int) func(*QueueOptions, string) error {
	return func(o *QueueOptions, value string) error {
		n, err := strconv.ParseUint(value, 10, 31)
		*of(o) = int(n)
		return err
	}
}

// IsQueueOption reports whether name is an option for queues.
func IsQueueOption(name string) bool {
	_, ok := queueOptions[name]
	return ok
}

// Queues returns o overridden by the options of the URL, as in oslo.messaging.
func (u URL) Queues(o QueueOptions) (QueueOptions, error) {
	for _, name := range slices.Sorted(maps.Keys(u.Query)) {
		read, ok := queueOptions[name]
		if !ok {
			continue
		}
		if err := read(&o, u.Query[name]); err != nil {
			return o, fault.Field("transport_url", "%s cannot be %q", name, u.Query[name])
		}
	}
	return o, nil
}

// ParseBool parses a boolean as oslo.config does.
func ParseBool(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true", "1", "on", "yes":
		return true, nil
	case "false", "0", "off", "no":
		return false, nil
	}
	return false, fault.New(fault.Invalid, "%q is neither true nor false", value)
}
