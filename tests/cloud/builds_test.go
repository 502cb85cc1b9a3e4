// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Builds fail on all hosts except one, and succeed on one of them.
func TestHostsAreAvoidedWhileBuildsFailThere(t *testing.T) {
	cloud := labtest.OpenStack(t)
	s := &siege{T: t, cloud: cloud, admin: cloud.REST(t, labtest.Admin)}
	t.Cleanup(s.clean)
	built.StartOn(t, built.TenHosts, append(built.BesideNova(t, cloud, built.Replace, ""), "OS_NOVA__NOTIFICATIONS=true")...)
	built.TakeTopic(t)
	s.caller = labtest.NewConductor(t, labtest.NovaTransport(t))
	s.served()

	hosts := cloud.Hosts(t)
	good, bad := hosts[0], hosts[1:]
	for _, host := range bad {
		s.builds(host, strings.Join(bad, " "), "ERROR")
	}
	// By free resources alone, each request would go to the emptiest host.
	s.eventually("a series of requests that all get the good host", func() bool {
		defer s.release() // or they fill the good host
		for range 2 * len(hosts) {
			if s.next() != good {
				return false
			}
		}
		return true
	})
	s.builds(bad[0], "", "ACTIVE")
	s.eventually("a request that gets the host on which a build has succeeded", func() bool { return s.next() == bad[0] })

	s.remove()
	s.release()
}

// release deletes the allocations of the requests so far.
func (s *siege) release() {
	s.Helper()
	for _, a := range s.asked {
		s.admin.Must(http.MethodDelete, "placement", "/allocations/"+a.instance, nil, nil)
	}
	s.asked = nil
}

// builds requests a server on a host. Its build fails on the hosts in failsOn.
func (s *siege) builds(host, failsOn, status string) {
	s.Helper()
	s.bootWith(map[string]any{"availability_zone": "nova:" + host, "metadata": map[string]string{"fails_on": failsOn}})
	id := s.servers[len(s.servers)-1]
	s.eventually("a server on "+host+" that is "+status, func() bool { return s.status(id) == status })
}

// next returns the host of the next request.
func (s *siege) next() string {
	s.Helper()
	a := s.ask()
	if a.err != nil {
		s.Fatal(a.err)
	}
	s.asked = append(s.asked, a)
	return a.host.Host
}
