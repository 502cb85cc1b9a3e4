// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// almanacd is killed while it waits for an answer of Nova: at the first step of a start, then
// at the last one and during an end. While the end of a canceled reservation is not carried out,
// Almanac cannot be removed from the cloud.
func TestAStartAndAnEndOutliveAKill(t *testing.T) {
	nova := labtest.Interpose(t, labtest.OpenStack(t).Compute)
	b := besideOpenStack(t, "OS_NOVA__ENDPOINT_OVERRIDE="+nova.URL)
	b.pool("cmp-*")
	// killedAt kills almanacd while it waits for the answers to these calls.
	killedAt := func(calls ...string) {
		t.Helper()
		for _, call := range calls {
			b.await("almanacd has sent "+call, func() bool { return nova.Count(call) > 0 })
		}
		b.crash()
		nova.Relent()
		b.start()
	}

	nova.Meddle("POST /v2.1/os-aggregates", labtest.Hang)
	r := b.reserve(b.demo, v1.ReservationRequest{Name: "tried", Duration: new(v1.Duration(3600)), Quantity: new(2)})
	killedAt("POST /v2.1/os-aggregates")
	r = b.becomes(r.ID, "active")
	b.traceOf(r.ID)
	own := b.settled(b.boot(b.demo, "own", r.ID, ""))
	b.runOn(r.Hosts, own...)

	again := b.reserve(b.demo2, v1.ReservationRequest{Name: "again", Duration: new(v1.Duration(3600)), StartTime: new(b.soon(5))})
	letIn, deletes := "DELETE /v2.1/flavors/"+again.ID+"/os-extra_specs/", "POST /v2.1/servers/"+own[0].ID+"/action"
	nova.Meddle(letIn, labtest.Hang)
	nova.Meddle(deletes, labtest.Hang)
	b.endsSoon(r.ID)
	killedAt(letIn, deletes)
	again = b.becomes(again.ID, "active")
	b.traceOf(again.ID)
	b.becomes(r.ID, "ended")
	b.reach("", own[0].ID)
	b.traceless(r.ID)

	theirs := b.settled(b.boot(b.demo2, "theirs", again.ID, ""))
	deletes = "POST /v2.1/servers/" + theirs[0].ID + "/action"
	nova.Meddle(deletes, labtest.Hang)
	b.as(labtest.Demo2, "reservation", "delete", "again", "--yes")
	b.await("almanacd has sent "+deletes, func() bool { return nova.Count(deletes) > 0 })
	b.Stop(t)
	nova.Relent()
	b.refused("not yet deleted or shelved their instances theirs (" + theirs[0].ID + ")")
	b.start()
	b.reach("", theirs[0].ID)
	b.traceless(again.ID)
	b.quiet()
}
