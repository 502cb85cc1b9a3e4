// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linked are the modules that a command may link, and none other. almanac-power knows the passwords of the machines'
// BMCs, so it links no web server, no database and no page.
var linked = map[string][]string{
	"cmd/almanac-power": {
		"github.com/cespare/xxhash/v2", "github.com/cpuguy83/go-md2man/v2", "github.com/go-logr/logr", "github.com/go-logr/stdr",
		"github.com/goccy/go-yaml", "github.com/google/uuid", "github.com/gophercloud/gophercloud/v2", "github.com/hashicorp/golang-lru/v2",
		"github.com/rabbitmq/amqp091-go", "github.com/russross/blackfriday/v2", "github.com/spf13/cobra", "github.com/spf13/pflag",
		"github.com/stmcginnis/gofish", "github.com/teambition/rrule-go", "github.com/tidwall/btree", "go.opentelemetry.io/auto/sdk", "go.opentelemetry.io/otel",
		"go.opentelemetry.io/otel/exporters/otlp/otlptrace", "go.opentelemetry.io/otel/log", "go.opentelemetry.io/otel/metric",
		"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/trace", "go.opentelemetry.io/proto/otlp", "go.yaml.in/yaml/v3",
		"golang.org/x/sync", "golang.org/x/sys", "google.golang.org/protobuf", "gopkg.in/yaml.v2",
	},
}

// served are the packages that only the service links.
var served = []string{"pkg/api", "pkg/app", "pkg/store", "pkg/dashboard", "pkg/dispatch", "pkg/nova", "pkg/sim/cloud"}

func dependencies(t *testing.T, command, format string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", format, "./"+command)
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

func TestTheProcessWithThePasswordsOfMachinesLinksNoServer(t *testing.T) {
	for command, may := range linked {
		modules := dependencies(t, command, "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}")
		slices.Sort(modules)
		for _, m := range slices.Compact(modules) {
			if !slices.Contains(may, m) {
				t.Errorf("%s links %s", command, m)
			}
		}
		for _, m := range may {
			if !slices.Contains(modules, m) {
				t.Errorf("%s may link %s, and does not", command, m)
			}
		}
	}
}

func TestOnlyTheServiceLinksTheService(t *testing.T) {
	for _, command := range []string{"cmd/almanac", "cmd/almanac-power"} {
		for _, p := range dependencies(t, command, "{{.ImportPath}}") {
			if ours, is := strings.CutPrefix(p, module+"/"); is && slices.Contains(served, ours) {
				t.Errorf("%s links %s", command, ours)
			}
		}
	}
}
