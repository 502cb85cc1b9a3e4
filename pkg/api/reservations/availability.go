// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"errors"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

const mostWindows = 1000

// availability handles GET /v1/availability.
func (s API) availability(c *serving.Call) (any, error) {
	q := c.Parameters("quantity", "duration", "start", "end", "host_properties", "together_by", "together_rule", "together_values", "apart_from")
	now := s.Now()
	request := reservation.Request{Duration: q.Seconds("duration"), Start: q.Time("start")}
	request.End = q.Window(now, serving.DefaultView).End
	if q.Time("end") == 0 && request.Duration >= serving.DefaultView {
		request.End = 0 // the window lasts as long, from the instant at which the service looks
	}
	request.Quantity = q.Number("quantity", 1, 1, 1<<31-1)
	request.HostProperties = q.Text("host_properties")
	request.Together = together(q)
	if request.Duration <= 0 {
		q.Fail("duration", "is required, at least one second: how long the hosts must be free, such as 2h30m")
	}
	if request.Start != 0 && request.Start < now.Add(-planning.LatestPast) {
		q.Fail("start", "%v lies in the past; it is now %v", request.Start, now)
	}
	if q.Err != nil {
		return nil, q.Err
	}
	by := c.Asker()
	filter, err := inventory.ParseFilter([]byte(request.HostProperties), s.Snapshot(), by.SeesHidden())
	if err != nil {
		return nil, err
	}
	windows, matched, err := s.Asked.Availability(c.Request.Context(), by.Caller(), request, mostWindows)
	if err != nil {
		return nil, ofParameter(err)
	}
	answer := v1.Availability{Matched: matched, Windows: []v1.Window{}, UnknownProperties: filter.Unknown()}
	for _, w := range windows {
		answer.Windows = append(answer.Windows, v1.Window{
			Start: w.Start.Time(), LatestStart: w.LatestStart.Time(), End: w.LatestStart.Add(request.Duration).Time(), Free: w.Free,
		})
	}
	if len(windows) == 0 {
		next, err := s.Asked.NextStart(c.Request.Context(), by.Caller(), request)
		if err != nil {
			return nil, err
		}
		answer.NextStart = v1.TimeOf(next)
	}
	return answer, nil
}

// together returns the rule of parameters; it is required, since a preferred one decides about no start.
func together(q *serving.Parameters) reservation.Together {
	w := v1.TogetherWish{By: q.Text("together_by"), ApartFrom: q.List("apart_from")}
	if w.By == "" && !q.Has("together_rule") && !q.Has("together_values") && len(w.ApartFrom) == 0 {
		return reservation.Together{}
	}
	otherwise := string(reservation.TogetherSame)
	if len(w.ApartFrom) > 0 {
		otherwise = ""
	}
	w.Rule = q.Choice("together_rule", otherwise, string(reservation.TogetherSame), string(reservation.TogetherSpread))
	w.Values = q.Number("together_values", 0, 2, 1<<31-1)
	return togetherOf(w)
}

// ofParameter returns an error about the rule of a request with the name of the parameter.
func ofParameter(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !strings.HasPrefix(f.Field, "together.") {
		return err
	}
	of := *f
	if of.Field = strings.Replace(f.Field, ".", "_", 1); f.Field == "together.apart_from" {
		of.Field = "apart_from"
	}
	return &of
}
