// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
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

// doctor serves the calls of the doctor.
type doctor struct {
	Doctor
	requestTimeout time.Duration
}

// routes returns the calls of the doctor.
func (s doctor) routes() []serving.Route {
	return []serving.Route{
		serving.Get("/v1/doctor", serving.Rule("doctor:get"), serving.InLine, serving.OnePage, serving.ByNobody, serving.NoParameters, serving.JSON(s.examine)),
		serving.Post("/v1/doctor", serving.Rule("doctor:fix"), serving.InLine, serving.OnePage, serving.ByNobody, serving.NoParameters, serving.JSON(s.fix)),
	}
}

// examine handles GET /v1/doctor.
func (s doctor) examine(c *serving.Call) (any, error) {
	return s.answerExamination(c, func() (upkeep.Examination, error) { return s.Doctor.Examine(c.Request.Context()) })
}

// fix handles POST /v1/doctor.
func (s doctor) fix(c *serving.Call) (any, error) {
	var body v1.Treatment
	if _, err := c.Body(&body, serving.AnyBody); err != nil {
		return nil, err
	}
	return s.answerExamination(c, func() (upkeep.Examination, error) {
		if body.DryRun {
			return s.Doctor.Plan(c.Request.Context())
		}
		// The rest of the request's time is for the answer.
		ctx, stop := context.WithTimeout(c.Request.Context(), s.requestTimeout*3/4)
		defer stop()
		by := c.Asker().Caller()
		by.Admin = true // of every project's reservations: the rule has admitted the caller
		return s.Doctor.Fix(ctx, by)
	})
}

func (s doctor) answerExamination(c *serving.Call, examine func() (upkeep.Examination, error)) (any, error) {
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
