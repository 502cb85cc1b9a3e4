// SPDX-License-Identifier: Apache-2.0

package devstack

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/repository"
)

const (
	pluginFolder   = "../../devstack"
	devstackFolder = "testdata/devstack"
)

// shellcheck has no complaint, and the indentation is DevStack's.
//
//make:test-cloud
func TestTheDevStackPluginIsCleanShell(t *testing.T) {
	program := built.Program(t, "shellcheck")
	files := []string{"plugin.sh", "settings", "override-defaults"}
	for i, name := range files {
		files[i] = filepath.Join(pluginFolder, name)
		for number, line := range strings.Split(repository.Read(t, files[i]), "\n") {
			indent := len(line) - len(strings.TrimLeft(line, " \t"))
			if strings.Contains(line, "\t") || indent%4 != 0 || strings.TrimRight(line, " ") != line || len(line) > 120 {
				t.Errorf("%s:%d: %q", name, number+1, line)
			}
		}
	}
	own, err := filepath.Glob(devstackFolder + "/*/*")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, append(own, devstackFolder+"/run", devstackFolder+"/lab-settings")...)
	if out, err := exec.CommandContext(t.Context(), program, append([]string{"-s", "bash", "-S", "warning"}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

//make:test-cloud
func TestTheDevStackReadmeHasEverySetting(t *testing.T) {
	settings := repository.Matches(`\b(ALMANAC_\w+)=\$[{(]`, repository.Read(t, pluginFolder+"/settings"))
	if diff := cmp.Diff(settings, repository.Matches("(?m)^\\| `(ALMANAC_\\w+)` \\|", repository.Read(t, pluginFolder+"/README.md"))); diff != "" {
		t.Errorf("(-settings +README):\n%s", diff)
	}
}

// DevStack has all functions and variables of the stand-in that the plugin is tested with.
//
//make:test-cloud
func TestTheStandInHasDevStacksNames(t *testing.T) {
	checkout := os.Getenv("DEVSTACK_DIR")
	if checkout == "" {
		t.Skip("DEVSTACK_DIR names no checkout of DevStack")
	}
	var text string
	for _, name := range []string{"functions", "functions-common", "stackrc", "inc/ini-config", "inc/python", "lib/database", "lib/rpc_backend", "lib/keystone", "lib/nova", "lib/tls"} {
		text += repository.Read(t, filepath.Join(checkout, name))
	}
	there := repository.Matches(`(?m)^ *function (\w+)`, text)
	for _, name := range repository.Matches(`(?m)^(\w+)\(\) `, repository.Read(t, devstackFolder+"/standin/functions")) {
		if name != "plugin_files" && !slices.Contains(there, name) {
			t.Errorf("DevStack has no function %s", name)
		}
	}
	for _, name := range repository.Matches(`(?m)^([A-Z_]+)=`, repository.Read(t, devstackFolder+"/standin/stackrc")) {
		if !regexp.MustCompile(`(?m)^ *` + name + `=`).MatchString(text) {
			t.Errorf("DevStack has no variable %s", name)
		}
	}
}

// The plugin uses the installed go command.
//
//make:test-cloud
func TestDevStackBuildsAlmanac(t *testing.T) {
	if testing.Short() {
		t.Skip("make check does not build twice")
	}
	s := newMachine(t, devstackFolder+"/standin")
	s.runs("install")
	if out, failed := s.command("almanacd", "--version"); failed || strings.Contains(out, "development") {
		t.Errorf("almanacd --version: %s", out)
	}
	if out, failed := s.command("almanac", "--help"); failed {
		t.Errorf("almanac --help: %s", out)
	}
}

//make:test-cloud
func TestDevStackRefusesWhatCannotWork(t *testing.T) {
	old := t.TempDir() + "/go"
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho go1.19.8\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ localrc, want string }{
		{"ALMANAC_NOVA_MODE=replaced", "off, plugin, interpose or replace, not replaced"},
		{"ENABLED_SERVICES+=,blazar-m", "Almanac and Blazar"},
		{"ENABLED_SERVICES=key,mysql,n-sch", "mysql and rabbit"},
		{"ENABLED_SERVICES=key,mysql,rabbit; ALMANAC_NOVA_MODE=interpose", "needs nova-scheduler"},
		{"ALMANAC_ROLES_APART=True; ALMANAC_NOVA_MODE=replace", "requires one process"},
		{"ALMANAC_GO=/nowhere/go", "/nowhere/go, which is no command"},
		{"ALMANAC_BINARIES=/nowhere", "not contain both"},
		{"ALMANAC_GO=" + old, "is 1.19.8, which cannot fetch it"},
	} {
		t.Run(bad.localrc, func(t *testing.T) {
			s := newMachine(t, devstackFolder+"/standin", bad.localrc)
			if out, failed := s.run("install"); !failed || !strings.Contains(out, bad.want) {
				t.Errorf("failed %v, want a message with %q:\n%s", failed, bad.want, out)
			}
			if left, err := filepath.Glob(s.folder + "/usr/*"); err != nil || len(left) > 0 {
				t.Errorf("%v is installed (%v)", left, err)
			}
		})
	}
}

// Each mode is stacked, used and unstacked with the stand-in for DevStack's functions, and with
// DevStack's own functions if DEVSTACK_DIR names a checkout.
//
//make:test-cloud
func TestDevStack(t *testing.T) {
	labtest.Long(t)
	folders := map[string]string{"the stand-in": devstackFolder + "/standin"}
	if checkout := os.Getenv("DEVSTACK_DIR"); checkout != "" {
		folders["DevStack"] = checkout
	}
	for name, folder := range folders {
		for _, m := range []stackMode{
			{"off", "ALMANAC_ROLES_APART=True", []string{"devstack@almanac-api", "devstack@almanac-inventory", "devstack@n-sch"}, "off", "nova-scheduler answers Nova"},
			{"plugin", "", []string{"devstack@almanac-api", "devstack@n-sch"}, "off", "nova-scheduler answers Nova"},
			{"interpose", "", []string{"devstack@almanac-api", "devstack@almanac-n-sch"}, "interpose", "nova-scheduler decides"},
			{"replace", "", []string{"devstack@almanac-api", "devstack@almanac-n-sch"}, "replace", "Almanac answers Nova"},
		} {
			t.Run(name+" "+m.name, func(t *testing.T) {
				s := newStack(t, folder, "ALMANAC_NOVA_MODE="+m.name, m.localrc)
				s.runs("stack")
				if diff := cmp.Diff(m.units, slices.Sorted(maps.Keys(s.units()))); diff != "" {
					t.Errorf("running units (-want +got):\n%s%s", diff, s.logs())
				}
				s.configured(m)
				s.registered()
				s.used(m)
				s.runs("unstack")
				s.runs("clean")
				s.gone()
			})
		}
	}
}

// stackMode is an ALMANAC_NOVA_MODE and its expected result.
type stackMode struct {
	name, localrc string
	units         []string
	// nova and decides are in the output of almanacd nova mode: the mode, and a part of a sentence.
	nova, decides string
}

// configured checks almanac.conf and the service on Nova's topic.
func (s *stack) configured(m stackMode) {
	t := s.t
	conf := s.folder + "/etc/almanac.conf"
	if out, failed := s.command("almanacd", "--config-file", conf, "config", "validate"); failed {
		t.Errorf("almanac.conf is refused: %s", out)
	}
	if out, failed := s.command("almanacd", "--config-file", conf, "nova", "mode"); failed || !strings.Contains(out, "mode: "+m.nova+"\n") || !strings.Contains(out, m.decides) {
		t.Errorf("the output of nova mode must contain %s and %q:\n%s", m.nova, m.decides, out)
	}
	if info, err := os.Stat(conf); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("almanac.conf has passwords, and its mode is %v (%v)", info.Mode(), err)
	}
	wanted := map[string]string{
		neighbours[0]: "enable_isolated_aggregate_filtering = True",
		neighbours[1]: "property_protection_rule_format = roles",
	}
	switch m.name {
	case "plugin":
		wanted[neighbours[0]] = "enable_isolated_aggregate_filtering = False"
	case "interpose":
		wanted[neighbours[2]] = "allocation_conflict_retry_count = 1"
	case "replace":
		wanted["tempest.conf"] = "ServerGroupAffinityFilter,SameHostFilter,DifferentHostFilter"
	}
	for path, want := range wanted {
		if !strings.Contains(repository.Read(t, filepath.Join(s.folder, path)), want) {
			t.Errorf("%s lacks %s", path, want)
		}
	}
}

// registered checks user, roles, service and endpoint in Keystone.
func (s *stack) registered() {
	t := s.t
	var found struct {
		Users     []struct{ ID string }
		Services  []struct{ ID, Name string }
		Endpoints []struct{ Interface, URL string }
		Roles     []struct{ Role struct{ Name string } } `json:"role_assignments"`
	}
	s.admin.Must(http.MethodGet, "identity", "/users?name="+s.user, nil, &found)
	s.admin.Must(http.MethodGet, "identity", "/services?type=reservation", nil, &found)
	if len(found.Users) != 1 || len(found.Services) != 1 || found.Services[0].Name != "almanac" {
		t.Fatalf("users %+v, services %+v", found.Users, found.Services)
	}
	s.admin.Must(http.MethodGet, "identity", "/endpoints?service_id="+found.Services[0].ID, nil, &found)
	endpoints := map[string]string{}
	for _, e := range found.Endpoints {
		endpoints[e.Interface] = e.URL
	}
	here := fmt.Sprintf("http://127.0.0.1:%d/v1", s.port)
	if diff := cmp.Diff(map[string]string{"public": here, "internal": here, "admin": here}, endpoints); diff != "" {
		t.Errorf("the endpoints (-want +got):\n%s", diff)
	}
	s.admin.Must(http.MethodGet, "identity", "/role_assignments?include_names=true&user.id="+found.Users[0].ID, nil, &found)
	var roles []string
	for _, assigned := range found.Roles {
		roles = append(roles, assigned.Role.Name)
	}
	slices.Sort(roles)
	if diff := cmp.Diff([]string{"admin", "service"}, roles); diff != "" {
		t.Errorf("the roles of Almanac's user (-want +got):\n%s", diff)
	}
}

// used makes a reservation of one of the hosts in local.conf, and a server with the hint. If
// nova-scheduler alone decides, it ignores the hint, and the fence keeps the server off the
// host.
func (s *stack) used(m stackMode) {
	t := s.t
	out, failed := s.command("almanac", "host", "list", "-f", "value", "-c", "Name", "-c", "Reservable")
	if failed || strings.Count(out, "true") != 2 {
		t.Errorf("want two reservable hosts:\n%s", out)
	}
	id, failed := s.command("almanac", "reservation", "create", "training", "--duration", "1h", "-f", "value", "-c", "ID")
	if id = strings.TrimSpace(id); failed {
		t.Fatalf("reserve: %s", id)
	}
	var host string
	s.await("the reservation has begun", func() bool {
		out, failed := s.command("almanac", "reservation", "show", id, "-f", "value", "-c", "Status", "-c", "Hosts")
		var status string
		_, err := fmt.Sscan(out, &status, &host)
		return !failed && err == nil && status == "active"
	})
	var made struct{ Server struct{ ID string } }
	s.admin.Must(http.MethodPost, "compute", "/servers", map[string]any{
		"server":             map[string]any{"name": "first", "flavorRef": "1", "imageRef": s.image(), "networks": "none"},
		"os:scheduler_hints": map[string]string{"reservation": id},
	}, &made)
	var found struct {
		Server struct {
			Status string
			Host   string  `json:"OS-EXT-SRV-ATTR:host"`
			Task   *string `json:"OS-EXT-STS:task_state"` // null when nothing is under way
		}
	}
	path, server := "/servers/"+made.Server.ID, &found.Server
	s.await("the server runs or has failed", func() bool {
		s.admin.Must(http.MethodGet, "compute", path, nil, &found)
		return server.Task == nil && (server.Status == "ACTIVE" || server.Status == "ERROR")
	})
	if server.Status != "ACTIVE" || (server.Host == host) != (m.name != "off") {
		t.Errorf("the server is %s on %q, the reservation on %s\n%s", server.Status, server.Host, host, s.logs())
	}
	s.admin.Must(http.MethodDelete, "compute", path, nil, nil)
	s.await("the server is gone", func() bool {
		return s.admin.Do(http.MethodGet, "compute", path, nil, nil) == http.StatusNotFound
	})
}

// await waits until the condition holds. Operations of a cloud take seconds, and longer beside other tests.
func (s *stack) await(what string, holds func() bool) {
	s.t.Helper()
	if !labtest.Poll(5*time.Minute, 200*time.Millisecond, holds) {
		s.t.Fatalf("still waiting until %s", what)
	}
}

// image returns the id of the lab's image.
func (s *stack) image() string {
	s.t.Helper()
	var found struct{ Images []struct{ ID string } }
	s.admin.Must(http.MethodGet, "image", "/v2/images?name=tiny", nil, &found)
	if len(found.Images) == 0 {
		s.t.Fatal("the lab has no image tiny")
	}
	return found.Images[0].ID
}

// gone checks that unstack and clean have left nothing.
func (s *stack) gone() {
	t := s.t
	if diff := cmp.Diff(s.glance, repository.Read(t, filepath.Join(s.folder, neighbours[1]))); diff != "" {
		t.Errorf("the configuration of Glance (-before +after):\n%s", diff)
	}
	if left := s.units(); len(left) > 0 {
		t.Errorf("units still run: %v", left)
	}
	for _, pattern := range []string{"etc", "usr/*", "units/devstack@almanac*", "glance/almanac*", "systemd/devstack@almanac*.enabled"} {
		if left, err := filepath.Glob(filepath.Join(s.folder, pattern)); err != nil || len(left) > 0 {
			t.Errorf("%v is left (%v)", left, err)
		}
	}
	vhosts := strings.Fields(labtest.Rabbitmqctl(t, "-q", "list_vhosts"))
	for _, vhost := range s.vhosts {
		if slices.Contains(vhosts, vhost) {
			t.Errorf("virtual host %s is left", vhost)
		}
	}
	ask := exec.CommandContext(t.Context(), s.folder+"/bin/mysql", "-ualmanac", "-palmanac", "-h127.0.0.1", "-Ne", "SHOW DATABASES")
	if out, err := ask.Output(); err != nil || strings.Contains(string(out), s.database) {
		t.Errorf("database %s is left (%v)", s.database, err)
	}
	var found struct{ Users, Services []struct{ ID string } }
	s.admin.Must(http.MethodGet, "identity", "/users?name="+s.user, nil, &found)
	s.admin.Must(http.MethodGet, "identity", "/services?type=reservation", nil, &found)
	if len(found.Users)+len(found.Services) > 0 {
		t.Errorf("users %+v and services %+v are left in Keystone", found.Users, found.Services)
	}
	var aggregates struct{ Aggregates []struct{ Name string } }
	s.admin.Must(http.MethodGet, "compute", "/os-aggregates", nil, &aggregates)
	for _, a := range aggregates.Aggregates {
		if strings.HasPrefix(a.Name, "almanac") {
			t.Errorf("aggregate %s is left", a.Name)
		}
	}
}
