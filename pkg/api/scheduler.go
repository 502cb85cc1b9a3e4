// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// filterHosts handles POST /v1/scheduler/filter.
func (s *server) filterHosts(c *gin.Context) (any, error) {
	var question v1.FilterQuestion
	if _, err := s.body(c, &question, s.MaxBodyBytes); err != nil {
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
