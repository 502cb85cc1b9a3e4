// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Conductors are killed while Almanac claims a host for them, and while no scheduler serves the
// topic.
//
//make:test-cloud
func TestNothingStaysClaimedForAConductorThatIsGone(t *testing.T) {
	labtest.Long(t)
	cloud := labtest.OpenStack(t)
	s := &siege{T: t, cloud: cloud, admin: cloud.REST(t, labtest.Admin), proxy: labtest.Interpose(t, cloud.Placement)}
	s.settings = append(built.BesideNova(t, cloud, built.Replace, ""), "OS_PLACEMENT__ENDPOINT_OVERRIDE="+s.proxy.URL)
	almanacd := built.StartOn(t, built.TenHosts, s.settings...)
	built.TakeTopic(t)
	s.caller = labtest.NewConductor(t, labtest.NovaTransport(t))
	s.served()

	granted := make(chan struct{})
	s.proxy.MeddleTimes(1, "POST /allocations", labtest.Late(granted))
	before := s.proxy.Count("POST /allocations")
	conductor, instance := s.doomed(5 * time.Second)
	s.eventually("a claim", func() bool { return s.proxy.Count("POST /allocations") > before })
	conductor.Die()
	close(granted)
	s.eventually("the claim", func() bool { return s.claimed(instance) })
	s.eventually("the release of the claim", func() bool { return !s.claimed(instance) })

	almanacd.Stop(t)
	conductor, instance = s.doomed(untilStarted)
	s.eventually("a request that waits", func() bool { return conductor.Waiting() > 0 })
	conductor.Die()
	almanacd = built.StartOn(t, built.TenHosts, s.settings...)
	s.served()
	s.eventually("a request that is dropped", func() bool { return len(logged(almanacd, "dropped a request, because its caller is gone")) > 0 })
	if s.claimed(instance) {
		t.Error("Almanac claimed a host for a conductor that was already gone")
	}

	for _, a := range s.asked { // live conductors keep their allocations
		s.has(a)
		s.admin.Must(http.MethodDelete, "placement", "/allocations/"+a.instance, nil, nil)
	}
}

// untilStarted is longer than almanacd takes to start; a request lasts as long as its conductor
// waits.
const untilStarted = 30 * time.Second

// doomed lets a conductor with that patience request a host; the caller kills it soon.
func (s *siege) doomed(patience time.Duration) (c *labtest.Conductor, instance string) {
	s.Helper()
	c, instance = labtest.NewPatientConductor(s, labtest.NovaTransport(s), patience), uuid.NewString()
	go func() {
		if _, err := c.SelectDestinations(s.Context(), labtest.RequestSpec{MemoryMB: 64}, []string{instance}, true, true); err == nil {
			s.Error("a conductor that is gone got an answer")
		}
	}()
	return c, instance
}

func (s *siege) claimed(instance string) bool {
	s.Helper()
	var found struct{ Allocations map[string]any }
	s.admin.Must(http.MethodGet, "placement", "/allocations/"+instance, nil, &found)
	return len(found.Allocations) > 0
}
