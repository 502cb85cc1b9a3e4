package api

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// filterHosts handles POST /v1/scheduler/filter.
func (s *server) filterHosts(c *gin.Context) {
	var question v1.FilterQuestion
	if _, err := s.body(c, &question); err != nil {
		s.fail(c, err)
		return
	}
	if question.Hosts == nil {
		s.fail(c, fault.Field("hosts", "is needed: the names of the hosts to judge"))
		return
	}
	if slices.Contains(question.Hosts, "") {
		s.fail(c, fault.Field("hosts", "a host needs a name"))
		return
	}
	judge := s.Filter.Judge(placing.Request{
		ProjectID: question.Request.ProjectID, Hints: question.Request.Hints, Preemptible: question.Request.Preemptible,
	}, s.Now())
	answer := v1.FilterAnswer{Hosts: []string{}, Refused: map[string]string{}}
	for _, host := range question.Hosts {
		if verdict := judge(host); verdict.Admitted() {
			answer.Hosts = append(answer.Hosts, host)
		} else {
			answer.Refused[host] = verdict.Reason
		}
	}
	c.PureJSON(http.StatusOK, answer)
}
