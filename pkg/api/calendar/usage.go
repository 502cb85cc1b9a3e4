// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/accounting"
)

const (
	// longestUsage is the largest number of seconds that one report may cover.
	longestUsage = 400 * 24 * 3600
	// mostPhases is the largest number of entries of the audit that one report may read.
	mostPhases = 100_000

	byProject, byHost = "project", "host"
	jsonForm, csvForm = "json", "csv"
	csvType           = "text/csv"
)

// usageQuestion is a request for host-hours.
type usageQuestion struct {
	span    span.Span
	by      string
	project string // empty for all
	all     bool   // the caller may see all projects, and hosts
	csv     bool
}

// showUsage handles GET /v1/usage.
func (s *API) showUsage(c *serving.Call) {
	q, err := s.usageQuestion(c)
	var answer v1.Usage
	if err == nil {
		answer, err = s.usage(c.Request.Context(), c.Asker(), q)
	}
	switch {
	case err != nil:
		c.Fail(err)
	case q.csv:
		c.Header("Content-Disposition", `attachment; filename="`+usageFile(answer)+`"`)
		c.Data(http.StatusOK, csvType+"; charset=utf-8", []byte(usageCSV(answer)))
	default:
		c.Send(http.StatusOK, answer)
	}
}

// usageQuestion reads the request.
func (s *API) usageQuestion(c *serving.Call) (u usageQuestion, err error) {
	q, by := c.Parameters("start", "end", "by", "project_id", "format"), c.Asker()
	now := s.Now()
	var given bool
	if u.span.End, given = q.Exactly("end"); !given {
		u.span.End = now
	}
	if u.span.Start, given = q.Exactly("start"); !given {
		u.span.Start = u.span.End.Add(-serving.DefaultView)
	}
	if u.span.Empty() {
		q.Fail("end", "%v is not after the start, %v", u.span.End, u.span.Start)
	} else if u.span.Seconds() > longestUsage {
		q.Fail("start", "a report covers at most 400 days, not %d", u.span.Seconds()/(24*3600))
	}
	u.by = q.Choice("by", byProject, byProject, byHost)
	form := jsonForm
	if strings.Contains(c.GetHeader("Accept"), csvType) {
		form = csvForm
	}
	u.csv = q.Choice("format", form, jsonForm, csvForm) == csvForm
	u.project = q.Text("project_id")
	if q.Err != nil {
		return u, q.Err
	}
	denied := by.Check("usage:get_all_projects", u.project)
	if u.all = denied == nil; u.all {
		return u, nil
	}
	if u.by == byHost || u.project != "" && u.project != by.ProjectID {
		return u, denied
	}
	u.project = by.ProjectID
	return u, nil
}

// usage returns the report.
func (s *API) usage(ctx context.Context, by *serving.Asker, u usageQuestion) (v1.Usage, error) {
	question := accounting.Question{Span: u.span, Now: s.Now(), Pool: map[string]resource.Vector{}, Sizes: map[string]resource.Vector{}}
	for _, h := range s.Snapshot().Hosts() {
		if question.Sizes[h.Name] = h.Capacity; h.Reservable {
			question.Pool[h.Name] = h.Capacity
		}
	}
	if u.all && u.project == "" {
		var err error
		if question.Asleep, err = s.slept(ctx, u.span); err != nil {
			return v1.Usage{}, err
		}
	}
	report, kept, err := s.account(ctx, by, question, u.project)
	if err != nil {
		return v1.Usage{}, err
	}
	answer := usageAnswer(u, report)
	if u.span.Start < kept.From {
		answer.KeptFrom = new(kept.From.Time())
	}
	return answer, nil
}

// slept returns when each host was asleep.
func (s *API) slept(ctx context.Context, w span.Span) (map[string][]span.Span, error) {
	records, err := s.History.PowerRecords(ctx)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	entries, err := s.History.Phases(ctx, w.Start, mostPhases+1)
	if err != nil {
		return nil, err
	}
	if len(entries) > mostPhases {
		return nil, fault.Field("start", "hosts have gone to sleep or woken more than %d times since %v; choose a later start", mostPhases, w.Start)
	}
	before, err := s.History.PhasesBefore(ctx, w.Start)
	if err != nil {
		return nil, err
	}
	return energy.Slept(w, s.Now(), append(before, entries...), records), nil
}

// usageAnswer returns the report in the JSON types, in host-hours.
func usageAnswer(u usageQuestion, report accounting.Report) v1.Usage {
	answer := v1.Usage{Start: u.span.Start.Time(), End: u.span.End.Time(), By: u.by, Rows: []v1.UsageRow{}}
	hosts := u.all && u.project == ""
	sums := report.Projects
	if u.by == byHost {
		sums = report.Hosts
	}
	for _, name := range accounting.Names(sums) {
		row := usageRow(sums[name], hosts && u.by == byHost)
		if u.by == byHost {
			row.Host = name
		} else {
			row.ProjectID = name
		}
		if hosts || row.Reserved > 0 {
			answer.Rows = append(answer.Rows, row)
		}
	}
	answer.Total = usageRow(report.Total, hosts)
	return answer
}

func usageRow(sum accounting.Sum, hosts bool) v1.UsageRow {
	row := v1.UsageRow{Reserved: hostHours(sum.Reserved), Used: hostHours(sum.Used)}
	if hosts {
		row.Maintenance, row.Idle = new(hostHours(sum.Maintenance)), new(hostHours(sum.Idle))
		row.Asleep, row.Capacity = new(hostHours(sum.Asleep)), new(hostHours(sum.Capacity))
	}
	return row
}

// hostHours returns hours, rounded to a ten-thousandth, which is a third of a second.
func hostHours(seconds float64) float64 { return math.Round(seconds/3600*1e4) / 1e4 }

// usageFile returns the name of the file with the report: what it sums, and its period.
func usageFile(u v1.Usage) string {
	const minute = "20060102T1504Z"
	return fmt.Sprintf("almanac-host-hours-by-%s-%s-%s.csv", u.By, u.Start.UTC().Format(minute), u.End.UTC().Format(minute))
}

// usageCSV returns the rows as CSV, with a line of names. Each row has the period, so that files of several periods can
// be joined.
func usageCSV(u v1.Usage) string {
	var text strings.Builder
	w := csv.NewWriter(&text)
	names := []string{"start", "end", u.By, "reserved_host_hours", "used_host_hours"}
	if u.By == byProject {
		names[2] = "project_id"
	}
	start, end := u.Start.UTC().Format(time.RFC3339), u.End.UTC().Format(time.RFC3339)
	hosts := u.By == byHost && u.Total.Capacity != nil
	if hosts {
		names = append(names, "maintenance_host_hours", "idle_host_hours", "asleep_host_hours", "capacity_host_hours")
	}
	lines := [][]string{names}
	for _, r := range u.Rows {
		line := []string{start, end, r.ProjectID + r.Host, decimal(r.Reserved), decimal(r.Used)}
		if hosts {
			line = append(line, decimal(*r.Maintenance), decimal(*r.Idle), decimal(*r.Asleep), decimal(*r.Capacity))
		}
		lines = append(lines, line)
	}
	_ = w.WriteAll(lines) // a strings.Builder takes everything
	return text.String()
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
