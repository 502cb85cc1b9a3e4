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

// Service answers for a source of hosts.
type Service struct {
	source  inventory.Source
	client  *oslo.Client
	changes oslo.Target
	elapsed func() time.Duration
	part    int // largest part, in bytes

	current atomic.Pointer[edition] // nil until the hosts were read
	readAt  atomic.Int64            // when elapsed, in nanoseconds, they were last read

	refreshing sync.Mutex
	read       []inventory.Host // of the current edition
	told       string           // the generation that everybody was told of
}

// NewService gives the service for a source. Refresh reads it, Endpoint serves it;
// the client sends the news of changes, on exchange. elapsed is the time since some
// instant.
func NewService(source inventory.Source, client *oslo.Client, exchange string, elapsed func() time.Duration) *Service {
	return &Service{source: source, client: client, changes: topic(exchange, ChangesTopic), elapsed: elapsed, part: largestPart}
}

// Refresh reads the hosts anew and tells everybody where they have changed. Where
// they cannot be read or contradict each other, and where there are none, it fails
// and the last good ones stay. When only the telling failed, the next Refresh does
// it again.
func (s *Service) Refresh(ctx context.Context) error {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	asked := s.elapsed()
	hosts, err := s.source.Hosts(ctx)
	if err != nil {
		return fmt.Errorf("read hosts: %w", err)
	}
	if len(hosts) == 0 {
		return fault.New(fault.Unavailable, "the inventory lists no hosts; the hosts known before stay")
	}
	if !reflect.DeepEqual(hosts, s.read) {
		if err := s.publish(hosts); err != nil {
			return err
		}
	}
	s.readAt.Store(int64(asked))
	return s.tell(ctx)
}

// publish makes the hosts those that are answered, where they make an inventory.
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

// tell tells everybody of the current edition, unless they know.
func (s *Service) tell(ctx context.Context) error {
	generation := s.current.Load().generation
	if s.told == generation {
		return nil
	}
	if err := s.client.Fanout(ctx, s.changes, changedMethod, nil); err != nil {
		return fmt.Errorf("tell that the hosts have changed: %w", err)
	}
	s.told = generation
	return nil
}

// Endpoint gives the methods for a server of Topic.
func (s *Service) Endpoint() oslo.Endpoint {
	return oslo.Endpoint{Version: version, Methods: map[string]oslo.Handler{hostsMethod: s.hosts}}
}

func (s *Service) hosts(_ context.Context, r *oslo.Request) (any, error) {
	var q question
	if err := r.Decode(&q); err != nil {
		return nil, fault.New(fault.Invalid, "%v", err)
	}
	now := s.current.Load()
	if now == nil {
		return nil, fault.New(fault.Unavailable, "the inventory service has not read its hosts yet; its log says why")
	}
	a := now.answer(q, s.part)
	a.Age = int64((s.elapsed() - time.Duration(s.readAt.Load())) / time.Second)
	return a, nil
}
