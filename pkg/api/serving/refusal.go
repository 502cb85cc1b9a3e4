// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"slices"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// refuse sends a refusal as the answer to a valid request.
func (c *Call) refuse(r *reservation.Refusal) {
	c.server.metrics.refusals.WithLabelValues(string(r.Constraint)).Inc()
	form := RefusalForm{Status: http.StatusConflict, Text: r.Message, EndField: "end_time"}
	if c.hasForm() {
		form = c.server.Form.Refusal(c, r)
	}
	answer := v1.ErrorAnswer{
		Error: v1.Error{Kind: string(fault.Refused), Message: form.Text, RequestID: c.GetString(requestIDKey)},
		Refusal: &v1.Refusal{
			Constraint: string(r.Constraint), Matched: r.Matched, Free: r.Free,
			BlockedBy: make([]v1.Block, len(r.BlockedBy)), LargestQuantity: r.LargestQuantity,
		},
	}
	for i, b := range r.BlockedBy {
		answer.Refusal.BlockedBy[i] = v1.Block{Host: b.Host, Start: b.Span.Start.Time(), End: b.Span.End.Time()}
	}
	if !c.hasForm() && len(r.BlockedBy) > 0 {
		if err := c.InTurn(func() { nameBlockers(c, answer.Refusal.BlockedBy, r) }); err != nil {
			c.Fail(err)
			return
		}
	}
	answer.Refusal.Occurrences = RefusedOccurrences(r.Occurrences)
	if r.EarliestStart != 0 {
		at := r.EarliestStart.Time()
		answer.Refusal.EarliestStart = &at
	}
	if r.LatestEnd != 0 {
		answer.Refusal.LatestEnd = new(r.LatestEnd.Time())
		answer.Error.Field = form.EndField
	}
	c.sendError(form.Status, answer)
}

// RefusedOccurrences returns refused occurrences in the JSON types.
func RefusedOccurrences(list []reservation.RefusedOccurrence) []v1.RefusedOccurrence {
	out := make([]v1.RefusedOccurrence, len(list))
	for i, o := range list {
		out[i] = v1.RefusedOccurrence{Local: o.Local, Start: o.Start.Time(), Constraint: string(o.Constraint), Message: o.Message}
	}
	return out
}

// changedKey is the key of the id of the reservation or the group that a call would change.
const changedKey = "changed"

// Changes notes the reservation or the group that the call would change: it blocks nothing.
func (c *Call) Changes(id string) { c.Set(changedKey, id) }

// mostBlockers is the largest number of reservations that a block names.
const mostBlockers = 10

// nameBlockers adds to each block of a refusal the first reservations that hold its host in the requested
// time, as far as the caller may learn which hosts they have. The reservation or the group that the
// request would change blocks nothing.
func nameBlockers(c *Call, shown []v1.Block, r *reservation.Refusal) {
	by, changed := c.Asker(), c.GetString(changedKey)
	at := make(map[string][]int) // indexes of blocks, by host
	for i, b := range r.BlockedBy {
		at[b.Host] = append(at[b.Host], i)
	}
	for _, holder := range c.server.Reservations.Live(r.Wanted) {
		if changed != "" && (holder.ID == changed || holder.Membership.LeaseID == changed) {
			continue
		}
		one := v1.Blocker{ID: holder.ID, Name: holder.Name, ProjectID: holder.ProjectID}
		for _, c := range holder.Claims {
			for _, i := range at[c.Host] {
				named := &shown[i].Reservations
				if c.Span.Overlaps(r.BlockedBy[i].Span) && c.Span.Overlaps(r.Wanted) && len(*named) < mostBlockers && !slices.Contains(*named, one) && by.Knows(&holder) {
					*named = append(*named, one)
				}
			}
		}
	}
}
