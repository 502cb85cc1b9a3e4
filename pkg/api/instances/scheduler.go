// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/admission"
	"github.com/almanac-cloud/almanac/weighers"
)

// Scheduler serves the calls of nova-scheduler's plugin.
type Scheduler struct {
	Admission admission.Admission
	// Weighers are the weighers whose weights the plugin uses.
	Weighers []weighers.Weighted
	Now      func() span.Instant
}

// filter handles POST /v1/scheduler/filter.
func (s Scheduler) filter(c *serving.Call) (any, error) {
	var question v1.FilterQuestion
	if _, err := c.Body(&question, serving.AnyBody); err != nil {
		return nil, err
	}
	if question.Hosts == nil {
		return nil, fault.Field("hosts", "is required: the names of the hosts to check")
	}
	if slices.Contains(question.Hosts, "") {
		return nil, fault.Field("hosts", "a host needs a name")
	}
	judge := s.Admission.Promises.Judge(placing.Request{
		ProjectID: question.Request.ProjectID, Hints: question.Request.Hints, Preemptible: question.Request.Preemptible,
	}, s.Now())
	var answer v1.FilterAnswer
	answer.Hosts, answer.Refused = judged(question.Hosts, judge)
	return answer, nil
}

// judged returns the admitted hosts, and the reasons for the others. Neither is nil.
func judged(hosts []string, judge func(host string) placing.Verdict) (admitted []string, refused map[string]string) {
	admitted, refused = []string{}, map[string]string{}
	for _, host := range hosts {
		if verdict := judge(host); verdict.Admitted() {
			admitted = append(admitted, host)
		} else {
			refused[host] = verdict.Reason
		}
	}
	return admitted, refused
}
