// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// Doctor examines whether the reservations, the cloud and its instances are consistent.
type Doctor interface {
	Examine(ctx context.Context) (upkeep.Examination, error)
	Plan(ctx context.Context) (upkeep.Examination, error)
	Fix(ctx context.Context, by booking.Caller) (upkeep.Examination, error)
}

// examine handles GET /v1/doctor.
func (s *server) examine(c *gin.Context) (any, error) {
	return s.answerExamination(c, func() (upkeep.Examination, error) { return s.Doctor.Examine(c.Request.Context()) })
}

// fix handles POST /v1/doctor.
func (s *server) fix(c *gin.Context) (any, error) {
	var body v1.Treatment
	if _, err := s.body(c, &body, s.MaxBodyBytes); err != nil {
		return nil, err
	}
	return s.answerExamination(c, func() (upkeep.Examination, error) {
		if body.DryRun {
			return s.Doctor.Plan(c.Request.Context())
		}
		// The rest of the request's time is for the answer.
		ctx, stop := context.WithTimeout(c.Request.Context(), s.RequestTimeout*3/4)
		defer stop()
		by := asking(c).caller()
		by.Admin = true // of every project's reservations: the rule has admitted the caller
		return s.Doctor.Fix(ctx, by)
	})
}

func (s *server) answerExamination(c *gin.Context, examine func() (upkeep.Examination, error)) (any, error) {
	if s.Doctor == nil {
		return nil, fault.New(fault.NotFound, "this process has no doctor; ask a process that carries out starts and ends")
	}
	seen, err := examine()
	if err != nil {
		return nil, err
	}
	answer := v1.Examination{Cloud: seen.Cloud, Untrusted: seen.Untrusted, Findings: []v1.Finding{}}
	for _, f := range seen.Findings {
		answer.Findings = append(answer.Findings, v1.Finding{
			Kind: string(f.Kind), Subject: f.Subject, Message: f.Message, Remedy: f.Remedy, Fixable: f.Fixable,
			Outcome: string(f.Outcome), Detail: f.Detail,
		})
	}
	return answer, nil
}
