// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"
	"net/http"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/api/leases"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
)

type version struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	MinVersion string `json:"min_version"`
	MaxVersion string `json:"max_version"`
	Links      []link `json:"links"`
}

type link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

// service serves the calls about the service itself.
type service struct {
	health    *health
	scrapes   *scrapes
	version   string
	simulated bool
	speed     int
}

// routes returns the calls that need no token, and the one for an operator's monitor.
func (s service) routes() []serving.Route {
	return []serving.Route{
		serving.Get("/", serving.Anybody(), serving.AtOnce, serving.Brief, serving.ByAnybodyNew, serving.JSON(s.versions)),
		serving.Get("/v1", serving.Anybody(), serving.AtOnce, serving.Brief, serving.ByAnybodyNew, serving.JSON(s.version1)),
		serving.Get(serving.HealthPath, serving.Anybody(), serving.Shared, serving.Brief, serving.ByNobody, s.health.show),
		serving.Head(serving.HealthPath, serving.Anybody(), serving.Shared, serving.Brief, serving.ByNobody, s.health.show),
		serving.Get("/metrics", serving.Anybody(), serving.Shared, serving.OnePage, serving.ByNobody, serving.Handler(s.scrapes)),
		serving.Get("/v1/openapi.yaml", serving.Anybody(), serving.AtOnce, serving.FixedText, serving.ByAnybody, document(openAPIDocument)),
		serving.Get("/v1/openapi-blazar.yaml", serving.Anybody(), serving.AtOnce, serving.FixedText, serving.ByAnybody, document(openAPIOfBlazar)),
		serving.Get("/v1/readiness", serving.Rule("readiness:get"), serving.Ahead, serving.Brief, serving.ByNobody, serving.NoParameters, serving.JSON(s.health.readiness)),
	}
}

func currentVersion(c *serving.Call) version {
	return version{
		ID: "v1.0", Status: "CURRENT", MinVersion: "1.0", MaxVersion: "1." + strconv.Itoa(leases.LatestMinor),
		Links: []link{{Rel: "self", Href: c.BaseURL() + "/v1"}},
	}
}

// versions handles GET /, in the form of OpenStack's version discovery.
func (s service) versions(c *serving.Call) (any, error) {
	answer := map[string]any{"versions": []version{currentVersion(c)}, "name": "almanac", "release": s.version}
	if s.simulated {
		answer["simulated"], answer["speed"] = true, max(1, s.speed)
	}
	return answer, nil
}

// version1 handles GET /v1.
func (s service) version1(c *serving.Call) (any, error) {
	return map[string]any{"version": currentVersion(c)}, nil
}

//go:embed openapi.yaml
var openAPIDocument []byte

//go:embed openapi-blazar.yaml
var openAPIOfBlazar []byte

// document returns the handler that sends a document.
func document(text []byte) serving.Step {
	return func(c *serving.Call) { c.Data(http.StatusOK, "application/yaml", text) }
}
