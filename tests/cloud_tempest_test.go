package tests

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
func TestTempestSaysTheSameOfAlmanac(t *testing.T) {
	enabled := os.Getenv("ALMANAC_TEST_TEMPEST")
	if enabled == "" {
		t.Skip("make test-tempest runs it")
	}
	said := map[string]map[string]string{}
	for _, way := range []string{stock, replace} {
		t.Run(way, func(t *testing.T) {
			t.Setenv("OS_FILTER_SCHEDULER__ENABLED_FILTERS", enabled)
			said[way] = placing(t, way).tempest(enabled)
		})
	}
	if diff := cmp.Diff(said[stock], said[replace]); diff != "" {
		t.Errorf("Tempest's results (-%s +%s):\n%s", stock, replace, diff)
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

// tempest returns Tempest's results by test: "ok", "skipped", "FAIL" or "ERROR".
func (b *beside) tempest(filters string) map[string]string {
	b.t.Helper()
	folder := b.t.TempDir()
	accounts, err := os.ReadFile("testdata/tempest-accounts.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	var settings bytes.Buffer
	err = template.Must(template.ParseFiles("testdata/tempest.conf")).Execute(&settings, map[string]string{
		"Folder": folder, "AuthURL": b.cloud.AuthURL, "Region": b.cloud.Region, "Image": b.image(), "Filters": filters,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	for name, text := range map[string][]byte{"accounts.yaml": accounts, "tempest.conf": settings.Bytes()} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	args := append([]string{"-W", "ignore", "-m", "unittest", "-v"}, installed(tempestModules)...)
	command := exec.CommandContext(b.t.Context(), "/usr/bin/python3", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "TEMPEST_CONFIG_DIR="+folder, "TEMPEST_CONFIG=tempest.conf")
	out, err := command.CombinedOutput() // its exit code is 1 if a test fails
	said := map[string]string{}
	// Tempest prints the name of a test with its id. If the whole class is skipped, it prints the
	// name of the class.
	for _, row := range regexp.MustCompile(`(?m)^(?:setUpClass \()?tempest\.(?:serial_tests\.)?api\.compute\.([\w.]+).* \.\.\. (ok|skipped|FAIL|ERROR)\b`).FindAllStringSubmatch(string(out), -1) {
		said[row[1]] = row[2]
	}
	if len(said) == 0 || !strings.Contains(string(out), "\nRan ") {
		b.t.Fatalf("Tempest: %v\n%s", err, out[max(0, len(out)-4000):])
	}
	if unloaded := regexp.MustCompile(`(?m)^\S+ \(unittest\.loader\._FailedTest\b`).FindAll(out, -1); len(unloaded) > 0 {
		b.t.Errorf("Tempest cannot load %q:\n%s", unloaded, out[max(0, len(out)-4000):])
	}
	b.t.Logf("Tempest, %d tests: %s", len(said), out[bytes.LastIndex(out, []byte("\nRan ")):])
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
