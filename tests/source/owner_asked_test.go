// SPDX-License-Identifier: Apache-2.0

package source

import "testing"

// asked has each call that asks who owns a reservation or a lease, by what the answer decides. Today one answer serves all
// of them. Whoever lets a project see or use what it may not change asks another question where this list says so.
var asked = map[string][]string{
	"see: whether it is listed or shown": {
		"pkg/api/calendar: claimOf: r.BelongsTo",
		"pkg/api/events: follower.tell: r.BelongsTo",
		"pkg/api/serving: Asker.Sees: r.BelongsTo",
		"pkg/store: markedStart: owned(marked, project)",
		"pkg/store: page: owned(found, q.ProjectID)",
		"pkg/store: selected: owned(found, q.ProjectID)",
		"pkg/store: Store.SeriesList: owned(found, q.ProjectID)",
		"pkg/store: Store.Webhooks: owned(db, q.ProjectID)",
		`pkg/store: Store.WebhooksOf: ownedByAny(tx.Where("all_projects = ?", false), chunk)`,
		"reservation/webhook/delivery: Deliveries.fillBatch: changes[i].Reservation.Projects",
		"reservation/webhook: Webhook.Wants: r.BelongsTo",
		"pkg/store: Store.SeriesList: owned(of, q.ProjectID)",
		"reservation/booking/memory: Records.SeriesList: s.BelongsTo",
		"reservation/booking/memory: Records.LeaseStates: l.BelongsTo",
		"reservation/booking/memory: selects: r.BelongsTo",
		"reservation/planning: checkApart: n.Of.BelongsTo",
		"reservation/upkeep: occupiedError: r.BelongsTo",
	},
	"use: whether an instance may start in it": {
		"filters: Reservation.usable: found.BelongsTo",
		"reservation/booking: Promises.InLease: r.BelongsTo",
	},
	"change: whether it may be changed or canceled": {
		"reservation/booking: Caller.may: r.BelongsTo",
		"reservation/booking: Leases.modifyLeaseOnce: l.BelongsTo",
		"reservation/booking: Recurring.subject: s.BelongsTo",
	},
	"see or change: the rule of the policy tells which": {
		"pkg/api/reservations: API.find: r.BelongsTo",
		"pkg/api/reservations: groups.groupLoading: l.BelongsTo",
		"pkg/api/reservations: series.loading: found.BelongsTo",
		"pkg/api/serving: Asker.CallerFor: what.BelongsTo",
	},
	"end: whose instances and floating IPs are in it, and leave at its end": {
		"pkg/sim/cloud: Fence.Of: r.Projects",
		"reservation/takeover: Guests: of.BelongsTo",
		"reservation/upkeep/openstack: Backend.Of: r.Projects",
		"reservation/upkeep: Networks.belongs: r.BelongsTo",
	},
	"charge: whether it counts for the project, and for its limits": {
		"pkg/api/calendar: API.accountOnce: live[i].BelongsTo",
		"pkg/store: Store.AddWebhook: owned(tx.Model(&webhookRow{}), w.ProjectID)",
		"pkg/store: Store.Past: owned(found, q.ProjectID)",
		"pkg/store: finding.named: owned(f.tx, f.asked.Project)",
		"pkg/store: finding.projects: ownedByAny(f.tx, chunk)",
		"reservation/booking/memory: Records.Recall: r.BelongsTo",
		"reservation/booking: Promises.Use: r.BelongsTo",
	},
}

// A new call is red until somebody has decided what it is about.
func TestEachQuestionForTheOwnerStatesWhatItDecides(t *testing.T) {
	meanings := headings(t, asked)
	calls := ownersUsed(t).asked
	for call, at := range calls {
		if meanings[call] == "" {
			t.Errorf("%v: add %q to asked, by what its answer decides", at, call)
		}
	}
	for call := range meanings {
		if _, is := calls[call]; !is {
			t.Errorf("asked names %q, which is nowhere", call)
		}
	}
}
