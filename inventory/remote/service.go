// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Service answers calls for the hosts of a source.
type Service struct {
	source  inventory.Source
	client  *oslo.Client
	changes oslo.Target
	elapsed func() time.Duration
	part    int // largest part, in bytes

	current atomic.Pointer[edition] // nil before the first reading
	readAt  atomic.Int64            // value of elapsed, in nanoseconds, at the last reading

	refreshing sync.Mutex
	read       []inventory.Host // of the current edition
	announced  string           // the generation announced last
}

// NewService returns the service for a source. Refresh reads the source, Endpoint serves it;
// the client announces changes on exchange. elapsed returns the time since a fixed instant.
func NewService(source inventory.Source, client *oslo.Client, exchange string, elapsed func() time.Duration) *Service {
	return &Service{source: source, client: client, changes: topic(exchange, ChangesTopic), elapsed: elapsed, part: largestPart}
}

// Refresh reads the hosts again and announces a change. If they cannot be read or contradict each
// other, or if there are none, it returns an error and the last valid hosts stay. If only the
// announcement failed, the next Refresh repeats it.
func (s *Service) Refresh(ctx context.Context) error {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	asked := s.elapsed()
	hosts, err := s.source.Hosts(ctx)
	if err != nil {
		return fmt.Errorf("read hosts: %w", err)
	}
	if len(hosts) == 0 {
		return fault.New(fault.Unavailable, "the inventory returned no hosts; keeping the previous list")
	}
	if !reflect.DeepEqual(hosts, s.read) {
		if err := s.publish(hosts); err != nil {
			return err
		}
	}
	s.readAt.Store(int64(asked))
	return s.announce(ctx)
}

// publish makes the hosts the current edition if they are a valid inventory.
func (s *Service) publish(hosts []inventory.Host) error {
	if _, err := inventory.NewSnapshot(hosts, nil, nil); err != nil {
		return err
	}
	next, err := newEdition(hosts)
	if err != nil {
		return err
	}
	s.read = hosts
	s.current.Store(&next)
	return nil
}

// announce sends a fanout message that the list of hosts has changed, unless it has done so for the
// present list.
func (s *Service) announce(ctx context.Context) error {
	generation := s.current.Load().generation
	if s.announced == generation {
		return nil
	}
	if err := s.client.Fanout(ctx, s.changes, changedMethod, nil); err != nil {
		return fmt.Errorf("announce a change of the hosts: %w", err)
	}
	s.announced = generation
	return nil
}

// Endpoint returns the methods for a server of Topic.
func (s *Service) Endpoint() oslo.Endpoint {
	return oslo.Endpoint{Version: version, Methods: map[string]oslo.Handler{hostsMethod: s.hosts}}
}

// hosts answers the question of another process for the hosts, with their age in seconds.
func (s *Service) hosts(_ context.Context, r *oslo.Request) (any, error) {
	var q question
	if err := r.Decode(&q); err != nil {
		return nil, fault.New(fault.Invalid, "%v", err)
	}
	now := s.current.Load()
	if now == nil {
		return nil, fault.New(fault.Unavailable, "the inventory service has not read its hosts yet; its log contains the reason")
	}
	a := now.answer(q, s.part)
	a.Age = int64((s.elapsed() - time.Duration(s.readAt.Load())) / time.Second)
	return a, nil
}
