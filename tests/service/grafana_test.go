// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// dashboard is what the tests read of a dashboard of Grafana.
type dashboard struct {
	UID, Title, Description string
	SchemaVersion           int
	Templating              struct {
		List []struct{ Name string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []struct{ RefID, Expr string }
}

// dashboards returns the dashboards of the examples, by the name of the file.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	paths, err := filepath.Glob(repository.OpsFolder + "/grafana-*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	all := map[string]dashboard{}
	for _, path := range paths {
		var d dashboard
		if err := json.Unmarshal([]byte(repository.Read(t, path)), &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = d
	}
	return all
}

func TestEachPanelHasATitleAUnitAndADescriptionAndFollowsTheVariables(t *testing.T) {
	for name, d := range dashboards(t) {
		if d.UID == "" || d.Title == "" || d.Description == "" || d.SchemaVersion == 0 {
			t.Errorf("%s lacks a uid, title, description or schemaVersion", name)
		}
		var variables []string
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
		}
		if diff := cmp.Diff([]string{"datasource", "job", "instance"}, variables); diff != "" {
			t.Errorf("variables of %s (-want +got):\n%s", name, diff)
		}
		ids, cells := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s has two panels %d", name, p.ID)
			}
			ids[p.ID] = true
			checkPanel(t, name, p)
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %q lies outside of the 24 columns or on %q", name, p.Title, other)
					}
					cells[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

func checkPanel(t *testing.T, name string, p panel) {
	t.Helper()
	if p.Type == "row" {
		return
	}
	if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
		t.Errorf("%s: panel %d, %q, lacks a title, description, unit or query", name, p.ID, p.Title)
	}
	if p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" {
		t.Errorf("%s: %q does not use the variable datasource", name, p.Title)
	}
	for _, query := range p.Targets {
		for _, selector := range repository.Matches(`\{([^{}]*)\}`, query.Expr) {
			if !strings.HasPrefix(selector, `job=~"$job", instance=~"$instance"`) {
				t.Errorf("%s: %q does not select by job and instance: %s", name, p.Title, selector)
			}
		}
	}
}

// The guide's table lists the metrics of almanacd.
func TestEachMetricIsOnAPanel(t *testing.T) {
	var shown []string
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, query := range p.Targets {
				for _, metric := range repository.Matches(`\b(almanac_\w+)\{`, query.Expr) {
					shown = append(shown, regexp.MustCompile(`_seconds_(bucket|sum|count)$`).ReplaceAllString(metric, "_seconds"))
				}
			}
		}
	}
	slices.Sort(shown)
	if diff := cmp.Diff(repository.Matches("(?m)^\\| `(almanac_\\w+)` \\|", repository.Read(t, repository.OperationsPage)), slices.Compact(shown)); diff != "" {
		t.Errorf("metrics (-table of the guide +panels):\n%s", diff)
	}
}

// without lists the panels that have series without numbers in a demo, with the reason.
var without = map[string]string{
	"Latency of the usage service": "there is no usage service, so no question takes any time",
}

// The demo has all features. What the test does there makes a number for each panel: a quantile
// has none before something was measured.
func TestEachPanelShowsSomething(t *testing.T) {
	broker := labtest.RabbitMQ(t)
	at := built.StartDemo(t, nil, "OS_DEFAULT__TRANSPORT_URL="+broker, "OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2")
	prometheus := labtest.Prometheus(t, strings.TrimPrefix(at, "http://"), "almanac_build_info")
	for _, step := range []struct {
		words   string
		refused bool
	}{
		{"reservation create soon --quantity 2 --duration 1h --start +1m --image debian-13", false},
		{"reservation create too-many --quantity 99 --duration 1h", true},
		{"demo server create one --flavor gpu", false}, // the demo has four GPUs
		{"demo server create two --flavor gpu", false},
		{"demo server create three --flavor gpu", false},
		{"demo server create four --flavor gpu", false},
		{"demo server create five --flavor gpu", true},
		{"doctor", false},
	} {
		if _, message, exit := built.Almanac(t, t.TempDir(), []string{"ALMANAC_URL=" + at}, strings.Fields(step.words)...); (exit != 0) != step.refused {
			t.Fatalf("%s: exit %d, %s", step.words, exit, message)
		}
	}
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, query := range p.Targets {
				expr := strings.NewReplacer("$job", "test", "$instance", ".+", "$__rate_interval", "10m").Replace(query.Expr)
				built.Eventually(t, name+": nothing for "+p.Title+": "+expr, func() bool {
					built.Get(t, at+"/v1/reservations", "") // something to measure
					values := ask(t, prometheus, expr)
					return slices.ContainsFunc(values, func(v string) bool { return v != "NaN" || without[p.Title] != "" })
				})
			}
		}
	}
}

// ask returns the values of a query to a Prometheus.
func ask(t *testing.T, prometheus, expr string) (values []string) {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	text := built.Get(t, prometheus+"/api/v1/query?query="+url.QueryEscape(expr), "")
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if answer.Status != "success" {
		t.Fatalf("Prometheus refuses %s: %s", expr, answer.Error)
	}
	for _, r := range answer.Data.Result {
		values = append(values, r.Value[1].(string))
	}
	return values
}
