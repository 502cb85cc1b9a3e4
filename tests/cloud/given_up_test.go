// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// The conductor is alive, but its request lies in the queue for longer than it waits.
//
//make:test-cloud
func TestWhatNovaHasGivenUpWhileAlmanacdWasAwayClaimsNothing(t *testing.T) {
	labtest.Long(t)
	b := besideOpenStack(t, built.AtTopic(t, built.Replace, "")...)
	built.TakeTopic(t)
	b.Stop(t)
	b.crashed = true
	late := b.wishing(b.admin, wish{name: "given up"})[0]
	b.within(5*time.Minute, time.Second, "Nova has given it up", func() bool { return b.look(late).Status == "ERROR" })
	b.start()
	b.await("the request is dropped", func() bool { return len(logged(b.Service, "dropped a request that Nova has given up")) > 0 })
	if b.hasSomething(late) {
		t.Error("the server in ERROR has an allocation")
	}
	if s := b.settled(b.wishing(b.admin, wish{name: "in time"})[0])[0]; s.Status != "ACTIVE" {
		t.Errorf("the next server is %s", s.Status)
	}
}
