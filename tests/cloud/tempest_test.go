// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// tempestModules lists Tempest's tests of behavior that depends on the scheduler, as far as the
// lab can run them: it has no networks, no volumes and no guests with a login.
var tempestModules = []string{
	"admin.test_aggregates", "admin.test_servers_on_multinodes", "admin.test_migrations", "admin.test_live_migration",
	"servers.test_availability_zone", "servers.test_create_server", "servers.test_multiple_create", "servers.test_server_group",
}

// Tempest (Debian's python3-tempest) tests Nova's API with nova-scheduler and with Almanac in its
// place. The same tests pass, fail and are skipped. ALMANAC_TEST_TEMPEST holds the
// enabled_filters of the lab's Nova.
//
//make:test-tempest
func TestTempestSaysTheSameOfAlmanac(t *testing.T) {
	enabled := os.Getenv("ALMANAC_TEST_TEMPEST")
	if enabled == "" {
		t.Skip("make test-tempest runs it")
	}
	said := map[string]map[string]string{}
	for _, way := range []string{stock, built.Replace} {
		t.Run(way, func(t *testing.T) {
			t.Setenv("OS_FILTER_SCHEDULER__ENABLED_FILTERS", enabled)
			said[way] = placing(t, way).tempest(enabled)
		})
	}
	if diff := cmp.Diff(said[stock], said[built.Replace]); diff != "" {
		t.Errorf("Tempest's results (-%s +%s):\n%s", stock, built.Replace, diff)
	}
	count := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(said[stock])) {
		count[said[stock][name]]++
		t.Log(name, said[stock][name])
	}
	t.Log(count)
	if count["ok"] < 30 {
		t.Errorf("%v: the lab differs from Tempest's configuration", count)
	}
}

// tempest returns the results of Tempest's own tests.
func (b *beside) tempest(filters string) map[string]string {
	b.t.Helper()
	// Tempest prints the name of a test with its id. If the whole class is skipped, it prints the
	// name of the class.
	name := `(?:setUpClass \()?tempest\.(?:serial_tests\.)?api\.compute\.([\w.]+).*`
	return runTempest(b.t, b.cloud, tempestSettings{Image: b.image(), Filters: filters}, name, installed(tempestModules)...)
}

// tempestSettings are what differs in testdata/tempest.conf.
type tempestSettings struct {
	Folder, AuthURL, Region, Image, Filters string
	Plugin                                  bool // for the tests of Blazar's plugin
}

// runTempest runs the tests of modules and returns their results by test: "ok", "skipped", "FAIL" or
// "ERROR". The pattern describes what Tempest prints before a result; its group is the name.
func runTempest(t *testing.T, cloud labtest.LabCloud, with tempestSettings, pattern string, modules ...string) map[string]string {
	t.Helper()
	with.Folder, with.AuthURL, with.Region = t.TempDir(), cloud.AuthURL, cloud.Region
	var settings bytes.Buffer
	if err := template.Must(template.ParseFiles("testdata/tempest.conf")).Execute(&settings, with); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(with.Folder, "tempest.conf"), settings.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-W", "ignore", "-m", "unittest", "-v"}, modules...)
	command := exec.CommandContext(t.Context(), "/usr/bin/python3", args...)
	command.Dir = with.Folder
	command.Env = append(os.Environ(), "TEMPEST_CONFIG_DIR="+with.Folder, "TEMPEST_CONFIG=tempest.conf")
	out, err := command.CombinedOutput() // its exit code is 1 if a test fails
	said := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^`+pattern+` \.\.\. (ok|skipped|FAIL|ERROR)\b`).FindAllStringSubmatch(string(out), -1) {
		said[row[1]] = row[2]
	}
	if len(said) == 0 || !strings.Contains(string(out), "\nRan ") {
		t.Fatalf("Tempest: %v\n%s", err, out[max(0, len(out)-4000):])
	}
	if unloaded := regexp.MustCompile(`(?m)^\S+ \(unittest\.loader\._FailedTest\b`).FindAll(out, -1); len(unloaded) > 0 {
		t.Errorf("Tempest cannot load %q:\n%s", unloaded, out[max(0, len(out)-4000):])
	}
	t.Logf("Tempest, %d tests: %s", len(said), out[bytes.LastIndex(out, []byte("\nRan ")):])
	for _, failure := range regexp.MustCompile(`(?m)^(?:(?:FAIL|ERROR): .*|Details: .*|\w[\w.]*(?:Error|Exception|Fault|Mismatch\w*): .*)$`).FindAll(out, 40) {
		t.Logf("%.300s", failure)
	}
	return said
}

// installed returns the full names of modules. Newer versions of Tempest have some of them among
// the tests that nothing else may run beside.
func installed(modules []string) (names []string) {
	for _, module := range modules {
		name := "tempest.serial_tests.api.compute." + module
		if _, err := os.Stat("/usr/lib/python3/dist-packages/" + strings.ReplaceAll(name, ".", "/") + ".py"); err != nil {
			name = "tempest.api.compute." + module
		}
		names = append(names, name)
	}
	return names
}
