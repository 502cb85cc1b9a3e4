// SPDX-License-Identifier: Apache-2.0

package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// The test looks up every "[section] option" and every OS_SECTION__OPTION of the guide in the
// sample.
func TestTheGuideNamesOptionsThatExist(t *testing.T) {
	sample, failed := built.Almanacd(t, built.NewFolder(t, built.TenHosts), nil, "config", "sample")
	if failed {
		t.Fatal(sample)
	}
	known, variables, section := map[string]bool{}, map[string]bool{}, ""
	for line := range strings.Lines(sample) {
		if m := regexp.MustCompile(`^\[(\w+)\]`).FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		if m := regexp.MustCompile(`^#(\w+) =`).FindStringSubmatch(line); m != nil {
			known["["+section+"] "+m[1]] = true
			variables["OS_"+strings.ToUpper(section+"__"+m[1])] = true
		}
	}
	for path, pattern := range map[string]string{
		repository.OperationsPage:             "`(\\[\\w+\\] \\w+)`",
		repository.NovaPage:                   "`(\\[\\w+\\] \\w+)`",
		repository.InstallPage:                "`(\\[\\w+\\] \\w+)`",
		repository.OpsFolder + "/haproxy.cfg": `(\[\w+\] [a-z]+_\w+)`,
	} {
		named := repository.Matches(pattern, repository.Read(t, path))
		if len(named) == 0 {
			t.Errorf("%s names no option", path)
		}
		for _, name := range named {
			if !known[name] {
				t.Errorf("%s mentions %s, which almanacd config sample does not have", path, name)
			}
		}
	}
	for _, name := range repository.Matches(`\b(OS_[A-Z_]+__[A-Z_]+)\b`, repository.Read(t, repository.OperationsPage)) {
		if !variables[name] {
			t.Errorf("the guide mentions %s, which is no option's variable", name)
		}
	}
}

func TestTheGuidesConfigurationIsValid(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	for _, text := range repository.Fenced(t, "ini") {
		if err := os.WriteFile(filepath.Join(folder, "almanac.conf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), filepath.Join(built.Commands(), "almanacd"), "config", "validate", "--config-file", "almanac.conf")
		c.Dir, c.Env = folder, append(os.Environ(), "OS_INVENTORY__HOSTS_FILE=hosts.yaml", "OS_DEFAULT__LOG_DIR=.")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s is refused:\n%s", text, out)
		}
	}
}

// The test runs each command of the guide's sh blocks with --help, which fails for unknown commands
// and flags.
func TestTheGuidesCommandsExist(t *testing.T) {
	count := 0
	for _, block := range repository.Fenced(t, "sh") {
		for _, words := range repository.Matches(`(?m)^(almanacd? [^|;#\n]*)`, block) {
			count++
			checkCommand(t, strings.Fields(words))
		}
	}
	if count < 10 {
		t.Errorf("found only %d commands", count)
	}
}

func checkCommand(t *testing.T, words []string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(built.Commands(), words[0]), append(words[1:], "--help")...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %s", strings.Join(words, " "), out)
		return
	}
	// The help of an unknown command is that of its known parent.
	path := words
	if flags := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }); flags >= 0 {
		path = words[:flags]
	}
	usage := func(command []string, arguments string) bool {
		return regexp.MustCompile(`Usage:\n  ` + regexp.QuoteMeta(strings.Join(command, " ")) + arguments + ` \[flags\]\n`).Match(out)
	}
	if !usage(path, `( \[?[A-Z.]+\]?)*`) && !usage(path[:len(path)-1], `( \[?[A-Z.]+\]?)+`) { // the last word may be an argument
		t.Errorf("there is no command %s:\n%s", strings.Join(path, " "), out)
	}
}

// almanacd exposes every metric that the guide and the alerts name, and the guide lists every
// metric.
func TestTheMetricsOfTheGuideAndTheAlertsExist(t *testing.T) {
	s := built.StartOn(t, built.TenHosts,
		// The broker's metrics exist also while it is unreachable.
		"OS_DEFAULT__TRANSPORT_URL=rabbit://u:p@127.0.0.1:1/", "OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2")
	if _, _, exit := s.Almanac(t, "reservation", "create", "too-many", "--quantity", "99", "--duration", "1h"); exit == 0 {
		t.Fatal("99 of 10 hosts were reserved")
	}
	built.Get(t, s.URL+"/v1/hosts", "another.example.org")
	metrics := built.Get(t, s.URL+"/metrics", "")
	exist := repository.Matches(`(?m)^# TYPE (almanac_\w+)`, metrics)

	if diff := cmp.Diff(exist, repository.Matches("(?m)^\\| `(almanac_\\w+)` \\|", repository.Read(t, repository.OperationsPage))); diff != "" {
		t.Errorf("metrics (-almanacd +table of the guide):\n%s", diff)
	}
	for _, path := range []string{repository.OperationsPage, repository.AlertsPath} {
		for _, name := range repository.Matches(`\b((?:almanac|process)_[a-z_]+[a-z])\b`, repository.Read(t, path)) {
			if name = strings.TrimSuffix(name, "_bucket"); !strings.Contains(metrics, "# TYPE "+name+" ") {
				t.Errorf("%s mentions %s, which /metrics does not have", path, name)
			}
		}
	}
}

func TestEachAlertHasItsSectionAndItsTest(t *testing.T) {
	alerts := repository.Matches(`(?m)- alert: (\w+)$`, repository.Read(t, repository.AlertsPath))
	if diff := cmp.Diff(alerts, repository.Matches(`(?m)^### (Almanac\w+)$`, repository.Read(t, repository.OperationsPage))); diff != "" {
		t.Errorf("alerts (-rules +sections of the guide):\n%s", diff)
	}
	if diff := cmp.Diff(alerts, repository.Matches(`alertname: (\w+)`, repository.Read(t, repository.OpsFolder+"/almanac-alerts_test.yml"))); diff != "" {
		t.Errorf("alerts (-rules +tests):\n%s", diff)
	}
}

// The test needs HAProxy and Prometheus, unlike all other tests.
func TestTheExamplesPleaseTheirPrograms(t *testing.T) {
	// HAProxy would look for the certificate.
	balancer := filepath.Join(t.TempDir(), "haproxy.cfg")
	text := strings.Replace(repository.Read(t, repository.OpsFolder+"/haproxy.cfg"), "ssl crt /etc/haproxy/almanac.pem", "", 1)
	if err := os.WriteFile(balancer, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"haproxy", "-c", "-f", balancer},
		{"promtool", "check", "config", repository.OpsFolder + "/prometheus.yml"},
		{"promtool", "test", "rules", repository.OpsFolder + "/almanac-alerts_test.yml"},
	} {
		t.Run(strings.Join(words[:3], " "), func(t *testing.T) {
			built.Shell(t, "", nil, built.Program(t, words[0]), words[1:]...)
		})
	}
}

func TestTheGuideLeadsToFilesAndSectionsThatExist(t *testing.T) {
	guides := map[string]string{repository.OperationsPage: repository.Read(t, repository.OperationsPage), repository.NovaPage: repository.Read(t, repository.NovaPage), repository.DeploymentPage: repository.Read(t, repository.DeploymentPage)}
	anchors := map[string][]string{} // by the name of the guide
	for path, text := range guides {
		for _, heading := range repository.Matches(`(?m)^##+ (.+)$`, text) {
			anchor := strings.ReplaceAll(strings.ToLower(heading), " ", "-")
			anchors[filepath.Base(path)] = append(anchors[filepath.Base(path)], regexp.MustCompile(`[^\w-]`).ReplaceAllString(anchor, ""))
		}
	}
	for path, text := range guides {
		for _, file := range repository.Matches(`\]\(([^)#:]+)`, text) {
			if _, err := os.Stat(filepath.Join("../../docs", file)); err != nil {
				t.Error(err)
			}
		}
		for _, file := range repository.Matches(`(?:^|[ (])(etc/almanac/[\w./@-]+)`, text) {
			if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
				t.Error(err)
			}
		}
		for _, link := range repository.Matches(`\]\(([^):]*#[^)]+)\)`, text) {
			file, anchor, _ := strings.Cut(link, "#")
			if file == "" {
				file = filepath.Base(path)
			}
			if known, guide := anchors[file]; guide && !slices.Contains(known, anchor) {
				t.Errorf("%s has no section %s", path, link)
			}
		}
	}
}

// In the column OK, "true" is good news, whatever the part is called.
func TestThePartsOfTheReadinessAreInTheGuideAndReadWell(t *testing.T) {
	guide, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, folder := range []string{"../../pkg/app", "../../pkg/energy/controller", "../../pkg/rebalance", "../../reservation/*", "../../reservation/*/controller"} {
		found, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, "_test.go") })...)
	}
	var parts []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// Periodic work is a part too, except what looks at the parts, and what cannot fail.
		for _, found := range regexp.MustCompile(`(?:\.probe\(|\.purge\(|job\.Job\{Name: )"([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			if found[1] != "readiness" && found[1] != "news of hosts" {
				parts = append(parts, found[1])
			}
		}
	}
	if len(parts) < 20 {
		t.Fatal("no part is found in pkg/app")
	}
	for _, part := range parts {
		if !strings.Contains(string(guide), "`"+part+"`") {
			t.Errorf("the part %q of the readiness is not in docs/operations.md", part)
		}
		if bad := regexp.MustCompile(`doubt|offset|fail|error|lost`).FindString(part); bad != "" {
			t.Errorf("the part %q is true when all is well; name it without %q", part, bad)
		}
	}
}
