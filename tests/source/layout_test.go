// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

const module = "github.com/almanac-cloud/almanac"

// layers lists the packages of each layer. A package imports only packages of lower layers. A
// package without a layer fails the test; add it here.
var layers = [][]string{
	0: {"pkg/figure", "pkg/hostset", "pkg/span", "pkg/resource", "pkg/fault", "pkg/precondition", "pkg/job", "pkg/turns", "pkg/oslolog", "pkg/nova/release", "pkg/manual", "pkg/owner"},
	1: {"pkg/strictjson", "inventory", "pkg/tracing", "reservation/address", "reservation/calendar", "reservation/recurrence", "reservation/staging", "reservation/tariff", "pkg/packing"},
	2: {"reservation", "reservation/tariff/feed", "tests/tracingtest", "reservation/besteffort", "pkg/placing", "pkg/preemption", "pkg/packing/glpk"},
	3: {"filters", "weighers", "reservation/lifecycle", "reservation/fence", "reservation/accounting", "reservation/webhook", "reservation/besteffort/state", "pkg/claiming", "pkg/blazar"},
	4: {"pkg/scheduler", "pkg/energy", "reservation/admission", "reservation/planning", "reservation/besteffort/requests", "reservation/enforcement", "reservation/takeover", "pkg/eviction", "pkg/claiming/memory"},
	5: {"reservation/booking", "pkg/dispatch", "pkg/energy/controller", "reservation/besteffort/controller", "pkg/rebalance", "reservation/staging/controller"},
	6: {
		"pkg/dashboard", "reservation/booking/memory", "reservation/upkeep", "pkg/store", "pkg/api/v1", "tests/cloudtest",
		"pkg/oslo", "pkg/openstack", "pkg/policy", "pkg/workload",
	},
	7: {
		"tests/storetest", "pkg/oslo/amqp", "tests/oslotest", "tests/oslotest/memory", "inventory/remote", "reservation/enforcement/remote", "reservation/notice", "pkg/client", "pkg/whatif", "pkg/energy/backtest",
		"pkg/api/serving", "pkg/keystone", "pkg/nova", "pkg/nova/cells", "pkg/nova/object", "pkg/placement", "pkg/ironic", "pkg/glance", "pkg/neutron", "pkg/power", "pkg/sim",
	},
	8: {"pkg/api/calendar", "pkg/api/events", "pkg/api/hosts", "pkg/api/instances", "pkg/api/leases", "pkg/api/page", "pkg/api/reservations", "pkg/api/webhooks", "reservation/webhook/delivery",
		"pkg/client/bulk", "pkg/config", "pkg/nova/topic", "inventory/openstack", "reservation/upkeep/openstack", "reservation/staging/openstack", "reservation/besteffort/openstack", "pkg/rebalance/openstack",
		"pkg/energy/openstack", "pkg/power/simulated", "pkg/power/command", "pkg/power/ipmi", "pkg/power/redfish", "pkg/power/ironic", "pkg/sim/site", "tests/powertest"},
	9:  {"pkg/api", "pkg/servicelog", "pkg/sim/papers/deadline", "pkg/sim/papers/energy", "pkg/sim/papers/preemption", "pkg/sim/replay", "pkg/sim/papers/staging", "pkg/sim/papers/packing", "pkg/sim/cloud", "pkg/sim/tenants"},
	10: {"pkg/app"},
	11: {"cmd/almanac", "cmd/almanacd", "cmd/almanac-power", "tests/growth", "tests/labtest", "tests/mysqlproxy", "tests/repository"},
	12: {"tests/built"},
	13: {"tests/blazartest", "tests/chaos"},
	14: {"tests/bench", "tests/blazar", "tests/browser", "tests/cloud", "tests/deployment", "tests/devstack", "tests/service", "tests/source"},
}

// owned lists, for each library of go.mod, the only packages that may import it outside their tests.
var owned = map[string][]string{
	"github.com/gin-gonic/gin":            {"pkg/api/serving"},
	"gorm.io/":                            {"pkg/store"},
	"github.com/go-gormigrate/":           {"pkg/store"},
	"modernc.org/sqlite":                  {"pkg/store"},
	"github.com/gophercloud/":             {"pkg/nova", "pkg/ironic", "pkg/keystone", "pkg/openstack"},
	"github.com/rabbitmq/amqp091-go":      {"pkg/oslo/amqp"},
	"github.com/databus23/goslo.policy":   {"pkg/policy"},
	"github.com/hashicorp/golang-lru":     {"pkg/keystone", "pkg/api/serving", "pkg/api/calendar", "pkg/api/leases"},
	"github.com/evanw/esbuild":            {"pkg/dashboard"},
	"github.com/teambition/rrule-go":      {"reservation/recurrence"},
	"github.com/tidwall/btree":            {"reservation/booking"},
	"github.com/go-sql-driver/mysql":      {"pkg/store", "tests/labtest", "tests/chaos"},
	"github.com/arran4/golang-ical":       {"pkg/api/calendar"},
	"github.com/spf13/cobra":              {"cmd/almanac", "cmd/almanacd", "cmd/almanac-power", "pkg/manual"},
	"github.com/stmcginnis/gofish":        {"pkg/power/redfish"},
	"gonum.org/v1/plot":                   {"pkg/figure"},
	"gonum.org/v1/gonum":                  {"pkg/sim", "pkg/workload"},
	"github.com/prometheus/client_golang": {"pkg/api", "pkg/api/serving", "pkg/api/events", "pkg/app"},
	"github.com/goccy/go-yaml":            {"inventory", "pkg/sim/replay", "cmd/almanac", "cmd/almanac-power", "pkg/policy"},
	"github.com/google/uuid":              {"pkg/app", "cmd/almanac", "cmd/almanac-power", "pkg/placing", "reservation/notice", "pkg/blazar", "tests/chaos"},
	"github.com/coreos/go-systemd/":       {"pkg/app"},
	"go.opentelemetry.io/":                {"pkg/tracing", "tests/tracingtest"},
	"google.golang.org/protobuf":          {"pkg/tracing", "tests/tracingtest"},
	"github.com/chromedp/":                {"tests/labtest"},
	"github.com/coder/websocket":          {"tests/labtest"},
	"golang.org/x/sys/":                   {"tests/growth"},
	"github.com/getkin/kin-openapi":       {},
	"github.com/cloudevents/":             {},
	"github.com/standard-webhooks/":       {},
	"github.com/google/go-cmp":            {"tests/cloudtest", "tests/oslotest", "tests/storetest"},
	"github.com/jedib0t/go-pretty":        {"cmd/almanac"},
	"github.com/prometheus/common":        {"pkg/app"},
	"github.com/schollz/progressbar":      {"cmd/almanac", "cmd/almanacd"},
	"github.com/spf13/pflag":              {"cmd/almanac", "pkg/manual"},
	"golang.org/x/net":                    {},
	"golang.org/x/term":                   {"cmd/almanac", "cmd/almanacd"},
	"golang.org/x/sync":                   {"inventory/openstack", "pkg/app", "pkg/keystone", "pkg/placement", "pkg/rebalance/openstack", "reservation/upkeep/openstack"},
	"pgregory.net/rapid":                  {"tests/storetest"},
}

// pkg is a package in the output of `go list`.
type pkg struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// goList asks `go list` once for all tests.
var goList = sync.OnceValues(func() (all []pkg, err error) {
	list := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...")
	list.Dir = repository.Root
	var complaint strings.Builder
	list.Stderr = &complaint
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, complaint.String())
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

// packages returns the packages of the repository.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := goList()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func layerOf(name string) (int, bool) {
	for layer, names := range layers {
		if slices.Contains(names, name) {
			return layer, true
		}
	}
	return 0, false
}

func TestImportsGoDownOnly(t *testing.T) {
	for _, p := range packages(t) {
		layer, listed := layerOf(p.name())
		if !listed {
			t.Errorf("%s stands in no layer; add it to the table in this file and to docs/architecture.md", p.name())
			continue
		}
		for _, path := range p.Imports {
			below, ours := strings.CutPrefix(path, module+"/")
			if !ours {
				continue
			}
			if other, ok := layerOf(below); ok && other >= layer {
				t.Errorf("%s (layer %d) imports %s (layer %d)", p.name(), layer, below, other)
			}
		}
	}
}

func TestLibrariesStayInTheirPackages(t *testing.T) {
	imported := map[string]bool{} // by library and package
	for _, p := range packages(t) {
		for _, path := range p.Imports {
			for library, owners := range owned {
				if strings.HasPrefix(path, library) && !slices.Contains(owners, p.name()) {
					t.Errorf("%s imports %s, which belongs to %s", p.name(), path, strings.Join(owners, ", "))
				}
				imported[library+" "+p.name()] = imported[library+" "+p.name()] || strings.HasPrefix(path, library)
			}
		}
	}
	for library, owners := range owned {
		for _, name := range owners {
			if !imported[library+" "+name] {
				t.Errorf("%s does not import %s: take it out of owned", name, library)
			}
		}
	}
}

func TestEachLibraryHasItsPackages(t *testing.T) {
	required, _, _ := strings.Cut(repository.Read(t, repository.Root+"/go.mod"), "// indirect")
	libraries := repository.Matches(`(?m)^\t(\S+) v\S+$`, required)
	if len(libraries) < 30 {
		t.Fatalf("go.mod has %d libraries", len(libraries))
	}
	unused := maps.Clone(owned)
	for _, library := range libraries {
		listed := false
		for name := range owned {
			if strings.HasPrefix(library+"/", name) {
				listed = true
				delete(unused, name)
			}
		}
		if !listed {
			t.Errorf("go.mod requires %s, which has no row in owned: add the packages that may import it", library)
		}
	}
	for name := range unused {
		t.Errorf("owned has %s, which go.mod does not require", name)
	}
}

// parsed returns the files of a package, except tests.
func parsed(t *testing.T, p pkg) (*token.FileSet, []*ast.File) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return set, files
}

func TestTimeChanceAndEnvironmentComeInFromOutside(t *testing.T) {
	forbidden := map[string][]string{
		"time": {"Now", "Since", "Until"},
		"os":   {"Getenv", "LookupEnv", "Environ"},
	}
	// Randomness in a simulation comes from its seed, through sim.Chance.
	given := []string{"Rand", "Source"}
	for _, p := range packages(t) {
		if strings.HasPrefix(p.name(), "cmd/") || p.name() == "pkg/app" || strings.HasPrefix(p.name(), "tests/") {
			continue
		}
		set, files := parsed(t, p)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				from, ok := call.X.(*ast.Ident)
				if ok && (slices.Contains(forbidden[from.Name], call.Sel.Name) ||
					from.Name == "rand" && p.name() != "pkg/sim" && !slices.Contains(given, call.Sel.Name)) {
					t.Errorf("%s: %s.%s; take it from the caller", set.Position(n.Pos()), from.Name, call.Sel.Name)
				}
				return true
			})
			if p.name() == "pkg/workload" || strings.HasPrefix(p.name()+"/", "pkg/sim/") {
				continue
			}
			for _, imported := range file.Imports {
				if path, _ := strconv.Unquote(imported.Path.Value); strings.HasPrefix(path, "math/rand") {
					t.Errorf("%s imports %s; take chance from the caller", set.Position(imported.Pos()), path)
				}
			}
		}
	}
}

// foreign are packages and types that are the form of another service's JSON.
var foreign = []string{"pkg/blazar", "reservation/fence.source"}

// Documents are the exception, since their type itself defines their JSON form, and forms of other
// services.
func TestDomainTypesCarryNoTags(t *testing.T) {
	names := documentTypes()
	for _, p := range packages(t) {
		if layer, _ := layerOf(p.name()); layer > 5 || slices.Contains(foreign, p.name()) {
			continue
		}
		set, files := parsed(t, p)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if named, ok := n.(*ast.TypeSpec); ok {
					if name := p.name() + "." + named.Name.Name; names[name] || slices.Contains(foreign, name) {
						return false // TestDocumentsKeepTheirForm checks the tags of a document
					}
				}
				if field, ok := n.(*ast.Field); ok && field.Tag != nil {
					t.Errorf("%s: a domain type has the tag %s; convert in an adapter, or list the type in documents_test.go if it is stored or sent whole",
						set.Position(field.Pos()), field.Tag.Value)
				}
				return true
			})
		}
	}
}

const license = "SPDX-License-Identifier: Apache-2.0"

// preact is the one file that is not ours; pkg/dashboard tests that it is as its authors made it, with their license.
const preact = "pkg/dashboard/page/preact.js"

// The header is the first line of a source file, or the second after what the system or a browser needs first.
func TestEachSourceFileNamesItsLicense(t *testing.T) {
	text, err := os.ReadFile("../../LICENSE")
	if err != nil || !strings.Contains(string(text), "Apache License\n                           Version 2.0") {
		t.Fatalf("LICENSE is not the license that the headers name: %v", err)
	}
	names, err := tracked()
	if err != nil {
		t.Skip("the source is not in a Git repository")
	}
	sources := []string{".go", ".py", ".sh", ".js", ".css", ".html"}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		source := slices.Contains(sources, filepath.Ext(name)) && name != preact || strings.HasPrefix(string(text), "#!") ||
			slices.Contains([]string{"Makefile", "Containerfile"}, filepath.Base(name))
		if head := strings.SplitN(string(text), "\n", 3); source && !strings.Contains(head[0]+head[min(1, len(head)-1)], license) {
			t.Errorf("%s does not name its license; its first line, or the one after #! or <!doctype>, is the comment %q", name, license)
		}
	}
}
