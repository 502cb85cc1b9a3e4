// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

const (
	feeds   = "/feeds/"
	feedEnd = ".ics"
	// feedPast is for how many seconds after their end reservations stay in a feed.
	feedPast = 30 * 24 * 3600
	// longestFeed is the maximum number of reservations in a feed: the coming and the current ones, earliest first,
	// then the last of the past ones.
	longestFeed = 1000
)

// inFeeds are the statuses of the reservations in a feed: one that waits has no time yet.
var inFeeds = []reservation.Status{reservation.Pending, reservation.Starting, reservation.Active, reservation.Ending, reservation.Ended, reservation.Failed}

// reservationsCalendar handles GET /v1/reservations.ics.
func (s *API) reservationsCalendar(c *serving.Call) {
	by := c.Asker()
	s.answerCalendar(c, by.ProjectID, func(r *reservation.Reservation) bool { return by.SeesHosts(r) })
}

// feedLink handles GET /v1/feed.
func (s *API) feedLink(c *serving.Call) (any, error) {
	if s.FeedSecret == "" {
		return nil, fault.New(fault.NotFound, "there are no feed links here: the operator has set no secret for them")
	}
	project := c.Asker().ProjectID
	return v1.Feed{URL: c.BaseURL() + feeds + url.PathEscape(project) + "/" + s.signature(project) + feedEnd}, nil
}

// signedLink admits requests whose link has the signature of its project, and counts them as requests of the
// project's feed.
func (s *API) signedLink(c *serving.Call) {
	project := c.Param("project_id")
	signature, _ := strings.CutSuffix(c.Param("file"), feedEnd)
	if s.FeedSecret == "" || !hmac.Equal([]byte(signature), []byte(s.signature(project))) {
		c.Fail(fault.New(fault.NotFound, "there is no feed here, or the link is no longer valid; get a new one from /v1/feed"))
		return
	}
	c.CountAs("feed " + project)
}

// feed handles GET /feeds/{project_id}/{file}, for programs that cannot send a token: anybody with
// the link may read the feed.
func (s *API) feed(c *serving.Call) { s.answerCalendar(c, c.Param("project_id"), serving.Begun) }

// signature returns the secret part of the link to the project's feed.
func (s *API) signature(project string) string {
	mac := hmac.New(sha256.New, []byte(s.FeedSecret))
	mac.Write([]byte(project))
	return hex.EncodeToString(mac.Sum(nil))
}

func (s *API) answerCalendar(c *serving.Call, project string, seesHosts func(*reservation.Reservation) bool) {
	list, err := s.inFeed(c.Request.Context(), project)
	var text string
	if err == nil {
		err = s.Turns.InTurn(c.Request.Context(), project, func() { text = ICalendar(project, list, seesHosts) })
	}
	if err != nil {
		c.Fail(err)
		return
	}
	tag := feedTag(text)
	c.Header("ETag", tag)
	if c.Holds(tag) {
		c.SendNotModified()
		return
	}
	if err := c.SendCompressed("text/calendar; charset=utf-8", []byte(text)); err != nil {
		c.Fail(err)
	}
}

// feedTag returns the ETag of a feed. It is weak, because an answer may be compressed.
func feedTag(text string) string {
	sum := sha256.Sum256([]byte(text))
	return `W/"` + hex.EncodeToString(sum[:16]) + `"`
}

// inFeed returns the reservations in the project's feed, by their start.
func (s *API) inFeed(ctx context.Context, project string) ([]reservation.Reservation, error) {
	now := s.Now()
	ahead, err := s.Reader.List(ctx, reservation.Query{
		ProjectID: project, Statuses: inFeeds, Overlaps: span.Span{Start: now, End: span.Forever}, Limit: longestFeed,
	})
	if err != nil || len(ahead) == longestFeed {
		return ahead, err
	}
	// Those that have begun and not ended are in both lists.
	past, err := s.Reader.List(ctx, reservation.Query{
		ProjectID: project, Statuses: inFeeds, Overlaps: span.Span{Start: now.Add(-feedPast), End: now}, Limit: longestFeed, Last: true,
	})
	if err != nil {
		return nil, err
	}
	past = slices.DeleteFunc(past, func(r reservation.Reservation) bool { return r.Span.End > now })
	past = past[max(0, len(past)+len(ahead)-longestFeed):]
	return append(past, ahead...), nil
}
