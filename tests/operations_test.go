// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The operator's guide, its chapter about Nova, and the files that it refers to.
const (
	guidePath      = "../docs/operations.md"
	novaPath       = "../docs/nova.md"
	installPath    = "../docs/install.md"
	deploymentPath = "../docs/deployment.md"
	opsFolder      = "../docs/examples/ops"
	alertsPath     = opsFolder + "/almanac-alerts.yml"
)

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// matches returns the first group of each match, sorted and without duplicates.
func matches(pattern, text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// fenced returns the code blocks of a language in the guide.
func fenced(t *testing.T, language string) []string {
	t.Helper()
	var blocks []string
	// A code block inside a list is indented, with its lines.
	pattern := regexp.MustCompile("(?ms)^( *)```" + language + "\n(.*?)^ *```$")
	for _, m := range pattern.FindAllStringSubmatch(readText(t, guidePath)+readText(t, novaPath)+readText(t, installPath), -1) {
		blocks = append(blocks, strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n"))
	}
	if len(blocks) == 0 {
		t.Fatalf("the guide has no %s", language)
	}
	return blocks
}

// The test looks up every "[section] option" and every OS_SECTION__OPTION of the guide in the
// sample.
func TestTheGuideNamesOptionsThatExist(t *testing.T) {
	sample, failed := almanacd(t, newFolder(t, tenHosts), nil, "config", "sample")
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
		guidePath:                  "`(\\[\\w+\\] \\w+)`",
		novaPath:                   "`(\\[\\w+\\] \\w+)`",
		installPath:                "`(\\[\\w+\\] \\w+)`",
		opsFolder + "/haproxy.cfg": `(\[\w+\] [a-z]+_\w+)`,
	} {
		named := matches(pattern, readText(t, path))
		if len(named) == 0 {
			t.Errorf("%s names no option", path)
		}
		for _, name := range named {
			if !known[name] {
				t.Errorf("%s mentions %s, which almanacd config sample does not have", path, name)
			}
		}
	}
	for _, name := range matches(`\b(OS_[A-Z_]+__[A-Z_]+)\b`, readText(t, guidePath)) {
		if !variables[name] {
			t.Errorf("the guide mentions %s, which is no option's variable", name)
		}
	}
}

func TestTheGuidesConfigurationIsValid(t *testing.T) {
	folder := newFolder(t, tenHosts)
	for _, text := range fenced(t, "ini") {
		if err := os.WriteFile(filepath.Join(folder, "almanac.conf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), filepath.Join(commands, "almanacd"), "config", "validate", "--config-file", "almanac.conf")
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
	for _, block := range fenced(t, "sh") {
		for _, words := range matches(`(?m)^(almanacd? [^|;#\n]*)`, block) {
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
	c := exec.CommandContext(t.Context(), filepath.Join(commands, words[0]), append(words[1:], "--help")...)
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
	s := startOn(t, tenHosts,
		// The broker's metrics exist also while it is unreachable.
		"OS_DEFAULT__TRANSPORT_URL=rabbit://u:p@127.0.0.1:1/", "OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2")
	if _, _, exit := s.almanac(t, "reservation", "create", "too-many", "--quantity", "99", "--duration", "1h"); exit == 0 {
		t.Fatal("99 of 10 hosts were reserved")
	}
	get(t, s.url+"/v1/hosts", "another.example.org")
	metrics := get(t, s.url+"/metrics", "")
	exist := matches(`(?m)^# TYPE (almanac_\w+)`, metrics)

	if diff := cmp.Diff(exist, matches("(?m)^\\| `(almanac_\\w+)` \\|", readText(t, guidePath))); diff != "" {
		t.Errorf("metrics (-almanacd +table of the guide):\n%s", diff)
	}
	for _, path := range []string{guidePath, alertsPath} {
		for _, name := range matches(`\b((?:almanac|process)_[a-z_]+[a-z])\b`, readText(t, path)) {
			if name = strings.TrimSuffix(name, "_bucket"); !strings.Contains(metrics, "# TYPE "+name+" ") {
				t.Errorf("%s mentions %s, which /metrics does not have", path, name)
			}
		}
	}
}

// get returns the service's answer to a request for the given Host header.
func get(t *testing.T, url, host string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Host = host
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEachAlertHasItsSectionAndItsTest(t *testing.T) {
	alerts := matches(`(?m)- alert: (\w+)$`, readText(t, alertsPath))
	if diff := cmp.Diff(alerts, matches(`(?m)^### (Almanac\w+)$`, readText(t, guidePath))); diff != "" {
		t.Errorf("alerts (-rules +sections of the guide):\n%s", diff)
	}
	if diff := cmp.Diff(alerts, matches(`alertname: (\w+)`, readText(t, opsFolder+"/almanac-alerts_test.yml"))); diff != "" {
		t.Errorf("alerts (-rules +tests):\n%s", diff)
	}
}

// The test needs HAProxy and Prometheus, unlike all other tests.
func TestTheExamplesPleaseTheirPrograms(t *testing.T) {
	// HAProxy would look for the certificate.
	balancer := filepath.Join(t.TempDir(), "haproxy.cfg")
	text := strings.Replace(readText(t, opsFolder+"/haproxy.cfg"), "ssl crt /etc/haproxy/almanac.pem", "", 1)
	if err := os.WriteFile(balancer, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"haproxy", "-c", "-f", balancer},
		{"promtool", "check", "config", opsFolder + "/prometheus.yml"},
		{"promtool", "test", "rules", opsFolder + "/almanac-alerts_test.yml"},
	} {
		t.Run(strings.Join(words[:3], " "), func(t *testing.T) {
			shell(t, "", nil, programOf(t, words[0]), words[1:]...)
		})
	}
}

func TestTheGuideLeadsToFilesAndSectionsThatExist(t *testing.T) {
	guides := map[string]string{guidePath: readText(t, guidePath), novaPath: readText(t, novaPath), deploymentPath: readText(t, deploymentPath)}
	anchors := map[string][]string{} // by the name of the guide
	for path, text := range guides {
		for _, heading := range matches(`(?m)^##+ (.+)$`, text) {
			anchor := strings.ReplaceAll(strings.ToLower(heading), " ", "-")
			anchors[filepath.Base(path)] = append(anchors[filepath.Base(path)], regexp.MustCompile(`[^\w-]`).ReplaceAllString(anchor, ""))
		}
	}
	for path, text := range guides {
		for _, file := range matches(`\]\(([^)#:]+)`, text) {
			if _, err := os.Stat(filepath.Join("../docs", file)); err != nil {
				t.Error(err)
			}
		}
		for _, file := range matches(`(?:^|[ (])(etc/almanac/[\w./@-]+)`, text) {
			if _, err := os.Stat(filepath.Join("..", file)); err != nil {
				t.Error(err)
			}
		}
		for _, link := range matches(`\]\(([^):]*#[^)]+)\)`, text) {
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
	guide, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, folder := range []string{"../pkg/app", "../pkg/energy/controller", "../pkg/rebalance", "../reservation/*", "../reservation/*/controller"} {
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
		// Periodic work is a part too, except what looks at the parts.
		for _, found := range regexp.MustCompile(`(?:\.probe\(|\.purge\(|job\.Job\{Name: )"([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			if found[1] != "readiness" {
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
