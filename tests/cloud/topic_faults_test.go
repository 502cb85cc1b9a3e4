// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// callerPatience is how long the callers of this test wait: longer than almanacd retries a claim,
// but less than the minute of Nova's conductor, which would make the test long.
const callerPatience = 20 * time.Second

// Two hundred requests for hosts, four at a time, and some servers arrive while one of two
// almanacds is killed and RabbitMQ and Placement restart. No resource is promised twice, and
// Placement keeps allocations only for requests whose caller could not get an answer.
//
//make:test-cloud
func TestTwoReplicasAtTheTopicOutliveAKillAndRestarts(t *testing.T) {
	labtest.Long(t)
	s := besiegeTopic(t)
	feed := func(number int) (fed <-chan struct{}) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range number {
				s.work <- struct{}{}
			}
		}()
		return done
	}

	s.boot()
	<-feed(20)
	// Placement grants the next two claims of one replica, but the replica does not learn of it.
	s.proxy.MeddleTimes(2, "POST /allocations", labtest.Lose)
	s.proxy.Meddle("GET /allocations/{consumer}", labtest.Hang)
	fed := feed(60)
	s.eventually("a claim that almanacd does not know", func() bool { return s.proxy.Count("GET /allocations/{consumer}") > 0 })
	s.killed.Kill()
	<-fed
	s.proxy.Relent()
	built.StartOn(t, built.TenHosts, s.settings...)

	s.boot()
	fed = feed(60)
	labtest.StopService(t, "rabbitmq")
	labtest.StartService(t, "rabbitmq")
	<-fed
	s.served() // after the nova-computes have reported through RabbitMQ again

	fed = feed(60)
	labtest.StopService(t, "placement")
	labtest.StartService(t, "placement")
	s.boot()
	<-fed
	close(s.work)
	s.callers.Wait()

	s.recovered()
	s.accounted()
}

// siege is two replicas on the topic and their callers.
type siege struct {
	*testing.T
	cloud    labtest.LabCloud
	admin    *labtest.REST
	proxy    *labtest.Meddler // between the replica that is killed and Placement
	settings []string
	killed   *built.Service
	caller   *labtest.Conductor

	work    chan struct{}
	callers sync.WaitGroup
	mu      sync.Mutex
	asked   []asked
	servers []string
}

// asked is a request for a host and its outcome.
type asked struct {
	instance string
	host     labtest.Selection
	err      error
}

func besiegeTopic(t *testing.T) *siege {
	t.Helper()
	cloud := labtest.OpenStack(t)
	s := &siege{T: t, cloud: cloud, admin: cloud.REST(t, labtest.Admin), proxy: labtest.Interpose(t, cloud.Placement), work: make(chan struct{})}
	s.settings = built.BesideNova(t, cloud, built.Replace, "")
	t.Cleanup(s.clean)
	s.killed = built.StartOn(t, built.TenHosts, append(slices.Clone(s.settings), "OS_PLACEMENT__ENDPOINT_OVERRIDE="+s.proxy.URL)...)
	built.StartOn(t, built.TenHosts, s.settings...)
	built.TakeTopic(t)
	s.caller = labtest.NewConductor(t, labtest.NovaTransport(t))
	for range 4 {
		s.callers.Go(func() {
			for range s.work {
				a := s.ask()
				s.mu.Lock()
				s.asked = append(s.asked, a)
				s.mu.Unlock()
			}
		})
	}
	return s
}

func (s *siege) ask() asked {
	a := asked{instance: uuid.NewString()}
	ctx, cancel := context.WithTimeout(s.Context(), callerPatience)
	defer cancel()
	answer, err := s.caller.SelectDestinations(ctx, labtest.RequestSpec{MemoryMB: 64}, []string{a.instance}, true, true)
	switch a.err = err; {
	case err != nil:
	case len(answer) != 1 || len(answer[0]) == 0:
		a.err = fmt.Errorf("the answer has no host: %v", answer)
	default:
		a.host = answer[0][0]
	}
	return a
}

// boot requests a server from Nova.
func (s *siege) boot() {
	s.Helper()
	s.bootWith(nil)
}

// bootWith requests a server with further fields from Nova.
func (s *siege) bootWith(more map[string]any) {
	s.Helper()
	var images struct{ Images []struct{ ID string } }
	s.admin.Must(http.MethodGet, "image", "/v2/images?name=tiny", nil, &images)
	asked := map[string]any{"name": "besieged", "flavorRef": tiny, "imageRef": images.Images[0].ID, "networks": "none"}
	maps.Copy(asked, more)
	var made struct{ Server struct{ ID string } }
	s.admin.Must(http.MethodPost, "compute", "/servers", map[string]any{"server": asked}, &made)
	s.servers = append(s.servers, made.Server.ID)
}

func (s *siege) status(id string) string {
	var found struct{ Server server }
	s.admin.Do(http.MethodGet, "compute", "/servers/"+id, nil, &found)
	return found.Server.Status
}

func (s *siege) eventually(what string, holds func() bool) {
	s.Helper()
	if !labtest.Poll(cloudPatience, 100*time.Millisecond, holds) {
		s.Fatalf("after %v, still waiting for %s", cloudPatience, what)
	}
}

// served waits until a request gets an answer.
func (s *siege) served() {
	s.Helper()
	s.eventually("a host", func() bool {
		a := s.ask()
		if a.err != nil {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, a)
		return true
	})
}

// recovered checks that everything works as before without intervention.
func (s *siege) recovered() {
	s.Helper()
	s.served()
	for range 20 {
		a := s.ask()
		if a.err != nil {
			s.Errorf("after all faults a request gets %v", a.err)
		}
		s.asked = append(s.asked, a)
	}
	s.boot()
	s.eventually("the last server", func() bool { return s.status(s.servers[len(s.servers)-1]) == "ACTIVE" })
}

// accounted checks Placement against the answers.
func (s *siege) accounted() {
	s.Helper()
	var answered, refused, unheard []string
	for _, a := range s.asked {
		remote, is := errors.AsType[*oslo.RemoteError](a.err)
		switch {
		case a.err == nil:
			answered = append(answered, a.instance)
			s.has(a)
		case is && remote.Class == "NoValidHost":
			refused = append(refused, a.instance)
		case !is && strings.Contains(a.err.Error(), "in time"):
			unheard = append(unheard, a.instance)
		default:
			s.Errorf("a request gets %v", a.err)
		}
	}
	s.Logf("of %d requests %d are answered, %d refused, %d without an answer", len(s.asked), len(answered), len(refused), len(unheard))
	// While RabbitMQ is down, the lab's nova-computes count as down after ten seconds, and requests
	// are refused until they have reported.
	if len(unheard) > 12 || len(answered) < len(s.asked)/2 {
		s.Error("too few answers: at each fault only four requests are under way")
	}
	s.roomy()
	for _, instance := range answered { // bare requests have no server
		s.admin.Must(http.MethodDelete, "placement", "/allocations/"+instance, nil, nil)
	}
	s.remove()
	leaked := func() (list []string) {
		for _, stray := range s.cloud.Stray(s) {
			list = append(list, strings.Fields(stray)[0])
		}
		return list
	}
	s.eventually("the release of all claims for refused requests", func() bool {
		return !slices.ContainsFunc(leaked(), func(id string) bool { return slices.Contains(refused, id) })
	})
	left := leaked()
	for _, id := range left {
		if !slices.Contains(unheard, id) && !slices.Contains(s.servers, id) {
			s.Errorf("%s has allocations, but no kill explains them", id)
		}
	}
	s.Logf("%d allocations have leaked", len(left))
	if len(left) == 0 {
		s.Error("no allocation has leaked: the kill met no request")
	}
	said := s.cloud.Audit(s)
	if left = leaked(); len(left) > 0 {
		s.Errorf("after the audit, %v still have allocations\n%s", left, said)
	}
}

// has checks that an answered request has exactly the allocations in its answer.
func (s *siege) has(a asked) {
	s.Helper()
	type allocations map[string]struct{ Resources map[string]int64 }
	var told, found struct{ Allocations allocations }
	if err := json.Unmarshal([]byte(a.host.AllocationRequest), &told); err != nil {
		s.Errorf("the allocation request of %s: %v", a.instance, err)
	}
	s.admin.Must(http.MethodGet, "placement", "/allocations/"+a.instance, nil, &found)
	if diff := gocmp.Diff(told, found); diff != "" {
		s.Errorf("the allocations of %s differ from the answer (-answer +found):\n%s", a.instance, diff)
	}
	if _, there := found.Allocations[a.host.ComputeNode]; !there || len(found.Allocations) != 1 {
		s.Errorf("%s has the answer %s, but the allocations %v", a.instance, a.host.Host, found.Allocations)
	}
}

// roomy checks that no host holds more than it has room for.
func (s *siege) roomy() {
	s.Helper()
	var providers struct {
		All []struct{ UUID, Name string } `json:"resource_providers"`
	}
	s.admin.Must(http.MethodGet, "placement", "/resource_providers", nil, &providers)
	for _, p := range providers.All {
		var stock struct {
			Inventories map[string]struct {
				Total, Reserved int64
				Ratio           float64 `json:"allocation_ratio"`
			}
		}
		var used struct{ Usages map[string]int64 }
		s.admin.Must(http.MethodGet, "placement", "/resource_providers/"+p.UUID+"/inventories", nil, &stock)
		s.admin.Must(http.MethodGet, "placement", "/resource_providers/"+p.UUID+"/usages", nil, &used)
		for class, amount := range used.Usages {
			if i := stock.Inventories[class]; float64(amount) > float64(i.Total-i.Reserved)*cmp.Or(i.Ratio, 1) {
				s.Errorf("%s uses %d %s of %+v", p.Name, amount, class, i)
			}
		}
	}
}

// remove deletes the servers, whatever their status.
func (s *siege) remove() {
	s.Helper()
	for _, id := range s.servers {
		s.Logf("server %s is %s", id, s.status(id))
		s.admin.Do(http.MethodDelete, "compute", "/servers/"+id, nil, nil)
	}
	s.eventually("an end of the servers", func() bool {
		return !slices.ContainsFunc(s.servers, func(id string) bool { return s.status(id) != "" })
	})
}

// clean removes everything from the cloud if the test has failed midway.
func (s *siege) clean() {
	if !s.Failed() {
		return
	}
	for _, id := range s.servers {
		s.admin.Do(http.MethodDelete, "compute", "/servers/"+id, nil, nil)
	}
	for _, a := range s.asked {
		s.admin.Do(http.MethodDelete, "placement", "/allocations/"+a.instance, nil, nil)
	}
}
