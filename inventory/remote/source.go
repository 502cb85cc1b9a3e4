// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Source is the inventory.Source that calls the service. It is safe for concurrent use.
type Source struct {
	client  *oslo.Client
	service oslo.Target
	changed chan struct{}

	known atomic.Pointer[reading]
	age   atomic.Int64 // of the last answer
}

// reading is the last result of the service.
type reading struct {
	generation string
	hosts      []inventory.Host
}

// NewSource returns the source that calls the service on exchange.
func NewSource(client *oslo.Client, exchange string) *Source {
	s := &Source{client: client, service: topic(exchange, Topic), changed: make(chan struct{}, 1)}
	s.known.Store(&reading{})
	return s
}

// Hosts returns the hosts that the service has read last. Each call sends a request to the service,
// which returns the hosts only if they have changed. If no service answers, it fails with an
// Unavailable fault.
func (s *Source) Hosts(ctx context.Context) ([]inventory.Host, error) {
	known := s.known.Load()
	next, err := s.read(ctx, known.generation)
	if err != nil {
		return nil, err
	}
	if next.generation != known.generation {
		hosts, err := next.hosts()
		if err != nil {
			return nil, err
		}
		known = &reading{next.generation, hosts}
		s.known.Store(known)
	}
	return slices.Clone(known.hosts), nil
}

// restarts is how often hosts are read from the beginning again, because they have changed in
// between, or because two services answer in turn and disagree.
const restarts = 5

// read returns the current edition; without its content if it is the known one.
func (s *Source) read(ctx context.Context, known string) (edition, error) {
	var next edition
	for started := 0; ; {
		a, err := s.call(ctx, question{Known: known, Reading: next.generation, Offset: len(next.packed)})
		if err != nil {
			return edition{}, err
		}
		s.age.Store(a.Age)
		if a.Generation == known {
			return edition{generation: known}, nil
		}
		if a.Generation != next.generation {
			if started++; started > restarts {
				break
			}
			next = edition{generation: a.Generation}
		}
		if next.packed = append(next.packed, a.Part...); len(next.packed) >= a.Size {
			return next, nil
		}
		if len(a.Part) == 0 {
			break
		}
	}
	return edition{}, fault.New(fault.Unavailable,
		"the hosts change faster than they can be read on topic %s; do its services read the same source?", Topic)
}

// call asks the process with the role inventory; the error explains where to look if none answers.
func (s *Source) call(ctx context.Context, q question) (answer, error) {
	var a answer
	err := s.client.Call(ctx, s.service, hostsMethod, q, &a)
	if _, answered := errors.AsType[*oslo.RemoteError](err); !answered && fault.Is(err, fault.Unavailable) {
		err = &fault.Error{
			Kind:    fault.Unavailable,
			Message: "the inventory does not answer on topic " + Topic + "; check that an almanacd with the role inventory runs, and the message broker",
			Err:     err,
		}
	}
	return a, err
}

// Age implements inventory.Dated. The hosts may be old, because the service also answers while its
// own source fails.
func (s *Source) Age() int64 { return s.age.Load() }

// Endpoint returns the methods for a server of ChangesTopic.
func (s *Source) Endpoint() oslo.Endpoint {
	return oslo.Endpoint{Version: version, Methods: map[string]oslo.Handler{changedMethod: s.noteChange}}
}

// Changed receives a value when the hosts of the service have changed. Such a message may be lost;
// it only makes the next reading earlier.
func (s *Source) Changed() <-chan struct{} { return s.changed }

func (s *Source) noteChange(context.Context, *oslo.Request) (any, error) {
	job.Poke(s.changed)
	return nil, nil
}
