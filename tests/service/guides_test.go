// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/blazartest"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// shown is a command of a page.
type shown struct {
	command string // begins with "# " if root types it
	status  int    // of the answer to an HTTP request; 0 if the page states none
}

var (
	block = regexp.MustCompile("(?ms)^( *)```(\\w*)\n(.*?)^ *```$(?:\n`(\\d{3}) [^`]*`([^\n]*))?")
	// typed matches a command at the beginning of a block.
	typed = regexp.MustCompile(`^ *([$#] )?((bin/)?almanac(d|-power)?|openstack|curl|make|source|export|systemctl) `)
)

// incomplete reports whether a command goes on in the next line.
func incomplete(command string) bool {
	return strings.HasSuffix(command, "\\") || strings.Count(command, "'")%2 == 1
}

// anyStatus is the status of a request whose answer depends on what the page does not make.
const anyStatus = -1

// commandsOf returns the commands in the blocks sh and console of a page. In a block console they have a
// prompt; what follows a whole command there is its output.
func commandsOf(t *testing.T, path string) (list []shown) {
	t.Helper()
	for _, m := range block.FindAllStringSubmatch(repository.Read(t, path), -1) {
		indent, language, text := m[1], m[2], m[3]
		if language == "" && typed.MatchString(text) {
			t.Errorf("%s has commands in a block without a language; use sh or console:\n%s", path, text)
		}
		if language != "sh" && language != "console" {
			continue
		}
		open := false
		for line := range strings.Lines(text) {
			line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), indent)
			prompt := strings.HasPrefix(line, "$ ") || strings.HasPrefix(line, "# ")
			switch {
			case open:
				list[len(list)-1].command += "\n" + line
			case language == "console" && !prompt, language == "sh" && prompt, strings.TrimSpace(line) == "":
				continue
			default:
				list = append(list, shown{command: strings.TrimPrefix(line, "$ ")})
			}
			open = incomplete(list[len(list)-1].command)
		}
		if status, err := strconv.Atoi(m[4]); err == nil {
			if strings.HasPrefix(m[5], ", if") {
				status = anyStatus
			}
			list[len(list)-1].status = status
		}
	}
	return list
}

// guideStage is where the commands of a page run.
type guideStage struct {
	url, folder string
	environment []string
}

// sampleStage starts almanacd on the sample hosts. The folder has what a checkout has beside the commands.
func sampleStage(t *testing.T) guideStage {
	return stageOn(t, repository.Read(t, "../../etc/almanac/hosts.yaml"))
}

func stageOn(t *testing.T, hosts string, settings ...string) guideStage {
	t.Helper()
	s := built.StartOn(t, hosts, append(settings, "OS_API__FEED_SECRET=of the guides")...)
	return guideStage{url: s.URL, folder: s.Folder, environment: []string{
		"OS_INVENTORY__HOSTS_FILE=hosts.yaml", "OS_DATABASE__CONNECTION=sqlite:///almanac.db",
	}}
}

// rackStage starts almanacd on the hosts that the pages for operators name.
func rackStage(t *testing.T) guideStage {
	return stageOn(t, `hosts:
  - {name: "cmp-[001-008]", vcpus: 8, memory_mb: 32768, disk_gb: 200}
  - {name: "node-[01-16]", vcpus: 8, memory_mb: 32768, disk_gb: 200}
`)
}

func demoStage(t *testing.T) guideStage {
	return guideStage{url: built.StartDemo(t, []string{"--busy=false"}), folder: t.TempDir()}
}

// energyStage is a demoStage in which an agent knows the machines.
func energyStage(t *testing.T) guideStage {
	s := demoStage(t)
	command := func(arguments ...string) error {
		return exec.CommandContext(t.Context(), filepath.Join(built.Commands(), "almanac"), append([]string{"--url", s.url, "energy"}, arguments...)...).Run()
	}
	if err := command("mode", "observe"); err != nil {
		t.Fatal(err)
	}
	built.Eventually(t, "no agent knows node-01", func() bool { return command("host", "off", "node-01", "--dry-run") == nil })
	return s
}

// guideStages has a stage for each page whose commands run without a cloud.
var guideStages = map[string]func(*testing.T) guideStage{
	"docs/api.md":             sampleStage,
	"docs/tenants.md":         sampleStage,
	"docs/install.md":         sampleStage,
	"docs/blazar.md":          sampleStage,
	"docs/first-day.md":       rackStage,
	"docs/operations.md":      rackStage,
	"docs/nova.md":            rackStage,
	"docs/tariff.md":          sampleStage,
	"docs/besteffort.md":      demoStage,
	"docs/images.md":          demoStage,
	"docs/packing.md":         demoStage,
	"docs/preemption.md":      demoStage,
	"docs/energy.md":          energyStage,
	"docs/energy-forecast.md": demoStage,
}

func TestTheCommandsOfTheGuidesWork(t *testing.T) {
	for path, open := range guideStages {
		t.Run(path, func(t *testing.T) {
			var list []shown
			for _, c := range commandsOf(t, "../../"+path) {
				if reasonFor(path, c.command) == "" {
					list = append(list, c)
				}
			}
			runGuide(t, open(t), list)
		})
	}
}

// prelude prints the status of each request, and lets openrc lead to the service as a real one does.
const prelude = `
curl() { command curl --silent --show-error --write-out '%{stderr}<status %{http_code}>' "$@"; }
echo "export ALMANAC_URL=$ALMANAC_URL" > openrc
`

// addresses matches the addresses of Almanac in the pages.
var addresses = regexp.MustCompile(`http://(127\.0\.0\.1|192\.0\.2\.11):1234`)

// runGuide runs commands one after the other in one shell, and reports those that fail.
func runGuide(t *testing.T, s guideStage, list []shown) {
	t.Helper()
	for link, target := range map[string]string{"bin": built.Commands(), "docs": "../../docs"} {
		target, err := filepath.Abs(target)
		if err == nil {
			err = os.Symlink(target, filepath.Join(s.folder, link))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	script := prelude
	for i, c := range list {
		script += fmt.Sprintf("%s\nprintf '\\n<exit %d %%d>\\n' $?\n", addresses.ReplaceAllString(c.command, s.url), i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*built.Patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = s.folder
	shell.Env = append(os.Environ(), "PATH="+built.Commands()+":"+os.Getenv("PATH"), "ALMANAC_URL="+s.url)
	shell.Env = append(shell.Env, s.environment...)
	shell.WaitDelay = built.Patience
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("the shell: %v", err)
	}
	rest := string(out)
	for i, c := range list {
		said, after, found := strings.Cut(rest, fmt.Sprintf("\n<exit %d ", i))
		if !found {
			t.Fatalf("%s does not end:\n%s", c.command, rest)
		}
		code, after, _ := strings.Cut(after, ">\n")
		rest = after
		statuses := repository.Matches(`<status (\d+)>`, said)
		bad := slices.ContainsFunc(statuses, func(status string) bool { return status >= "400" })
		if c.status != 0 {
			bad = c.status != anyStatus && !slices.Equal(statuses, []string{strconv.Itoa(c.status)})
		}
		if code != "0" || bad {
			t.Errorf("%s: exit code %s\n%s", c.command, code, said)
		}
	}
}

// The commands of Blazar's client run beside Keystone and find Almanac in its catalog.
func TestTheCommandsForBlazarsClientWork(t *testing.T) {
	g := built.StartGuarded(t)
	region := "region-" + rand.Text()
	b := &blazartest.InCatalog{Guarded: g, Region: region, Admin: blazartest.Client{T: t, Clients: g.Keystone.Clients(t, labtest.Admin)}}
	t.Cleanup(func() { b.LeaveCatalog(region) })
	admin := append(g.Keystone.Environment(labtest.Admin), g.Settings...)
	if out, failed := built.Almanacd(t, g.Folder, admin, "bootstrap", "keystone", "--public-url", g.URL+"/v1", "--region", region); failed {
		t.Fatalf("bootstrap: %s", out)
	}
	var list []shown
	for _, c := range commandsOf(t, "../../docs/blazar.md") {
		if reasonFor("docs/blazar.md", c.command) == "test TestTheCommandsForBlazarsClientWork" {
			c.command = strings.ReplaceAll(c.command, "cmp-001", "host-01") // a host that this service has
			list = append(list, c)
		}
	}
	runGuide(t, guideStage{url: g.URL, folder: g.Folder, environment: append(g.Keystone.Environment(labtest.Admin), "OS_REGION_NAME="+region)}, list)
}
