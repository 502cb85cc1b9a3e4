// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// suites lists those of Debian and Ubuntu in whose clean roots the packages are installed.
var suites = []string{"bookworm", "trixie", "jammy", "noble"}

// needsRoot skips a test that builds packages and installs them as root.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getenv("ALMANAC_TEST_PACKAGES") == "" {
		t.Skip("make test-packages runs it")
	}
	if os.Getuid() != 0 {
		t.Fatal("only root can make clean roots; run make test-packages as root")
	}
}

// clone makes a clone of the commit: what is not committed is not in the packages.
func clone(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "almanac")
	built.Shell(t, "../..", nil, "git", "clone", "--quiet", "--no-tags", ".", folder)
	return folder
}

// build builds in the folder of a clone. It returns the folder with the results.
func build(t *testing.T, folder, what string, environment ...string) string {
	t.Helper()
	begin := time.Now()
	built.Shell(t, folder, environment, "packaging/build", what)
	t.Logf("%s %s took %s", what, strings.Join(environment, " "), time.Since(begin).Round(time.Second))
	return filepath.Join(folder, "dist")
}

// buildPackages builds what is tested of a version: packages for this machine only.
func buildPackages(t *testing.T, version string) string {
	t.Helper()
	return build(t, clone(t), "packages", "VERSION="+version, "ARCHES="+runtime.GOARCH)
}

//make:test-packages
func TestPackagesOfTwoBuildsAreTheSame(t *testing.T) {
	needsRoot(t)
	here, there := clone(t), clone(t)
	first := build(t, here, "release", "VERSION=1.2.3")
	second := build(t, there, "release", "VERSION=1.2.3", "TZ=Pacific/Auckland", "LANG=C.UTF-8")
	sums := repository.Read(t, filepath.Join(first, "SHA256SUMS"))
	if d := cmp.Diff(sums, repository.Read(t, filepath.Join(second, "SHA256SUMS"))); d != "" {
		t.Errorf("two builds differ:\n%s", d)
	}
	built.Shell(t, second, nil, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	for _, pattern := range []string{
		`almanac-client_1\.2\.3_(amd64|arm64)\.deb`, `almanac-client-1\.2\.3-1\.(x86_64|aarch64)\.rpm`,
		`almanac-client-1\.2\.3-(linux-amd64|linux-arm64|darwin-amd64|darwin-arm64|windows-amd64|windows-arm64)\.tar\.gz`,
		`almanac_1\.2\.3_(amd64|arm64)\.deb`, `almanac-power_1\.2\.3_(amd64|arm64)\.deb`, `python3-almanac-nova_1\.2\.3_all\.deb`,
		`almanac-1\.2\.3-1\.(x86_64|aarch64)\.rpm`, `almanac-power-1\.2\.3-1\.(x86_64|aarch64)\.rpm`, `python3-almanac-nova-1\.2\.3-1\.(el9|el10)\.noarch\.rpm`,
		`almanac-1\.2\.3-linux-(amd64|arm64)\.tar\.gz`, `almanacd-1\.2\.3-linux-(amd64|arm64)\.cdx\.json`,
	} {
		files := repository.Matches(`(?m)  (`+pattern+`)$`, sums)
		if want := strings.Count(pattern, "|") + 1; len(files) != want {
			t.Errorf("%d files are named %s, want %d: %s", len(files), pattern, want, files)
		}
	}
	bill := repository.Read(t, filepath.Join(first, "almanacd-1.2.3-linux-amd64.cdx.json"))
	for _, part := range []string{`"bomFormat": "CycloneDX"`, `"version": "v1.2.3"`, "pkg:golang/gorm.io/gorm@", "pkg:golang/std@"} {
		if !strings.Contains(bill, part) {
			t.Errorf("the SBOM of almanacd lacks %s", part)
		}
	}
}

// serving starts the command of the unit as its user, in the place of systemd, and runs $1 while it
// serves. What it prints begins after the health check.
const serving = `
unit=/usr/lib/systemd/system/almanacd.service
value() { sed -n "s/^$1=//p" $unit; }
cd "$(value WorkingDirectory)"
umask "$(value UMask)"
setpriv --reuid "$(value User)" --regid "$(value Group)" --clear-groups --no-new-privs $(value ExecStart) 2>/tmp/almanacd.log &
service=$!
timeout 60 sh -c 'until almanacd healthcheck >/dev/null 2>&1; do sleep 0.1; done' || { cat /tmp/almanacd.log; exit 1; }
user() { setpriv --reuid nobody --regid nogroup --clear-groups "$@"; }
page() { exec 3<>/dev/tcp/127.0.0.1/1234; printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3; cat <&3; }
eval "$1"
kill $service
wait $service
rm /tmp/almanacd.log
`

// machine is a clean Debian or Ubuntu in a folder.
type machine struct {
	*testing.T
	folder string
}

func cleanMachine(t *testing.T, suite string) machine {
	t.Helper()
	m := machine{t, filepath.Join(t.TempDir(), suite)}
	built.Shell(t, ".", nil, "../openstack/debian", suite, m.folder)
	m.run("apt-get -qq update")
	return m
}

// run runs a script in the root.
func (m machine) run(script string) string {
	m.Helper()
	return built.Shell(m.T, ".", nil, "../openstack/debian", "within", m.folder, "bash", "-euo", "pipefail", "-c", script)
}

// serve runs a script while almanacd serves, on a loopback of its own.
func (m machine) serve(script string) string {
	m.Helper()
	return built.Shell(m.T, ".", nil, "../openstack/debian", "alone", m.folder, "bash", "-euo", "pipefail", "-c", serving, "-", script)
}

// install copies the packages that match a pattern into the root and installs them, with what they depend on.
func (m machine) install(dist, pattern string) {
	m.Helper()
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(found) != 1 {
		m.Fatalf("%s in %s: %v, %v", pattern, dist, found, err)
	}
	raw, err := os.ReadFile(found[0])
	if err != nil {
		m.Fatal(err)
	}
	name := "/tmp/" + filepath.Base(found[0])
	if err := os.WriteFile(m.folder+name, raw, 0o644); err != nil {
		m.Fatal(err)
	}
	m.run("apt-get -y -qq install " + name + " </dev/null && rm " + name)
}

// files returns every file of the root, except what apt and dpkg note about any package.
func (m machine) files() []string {
	m.Helper()
	notes := regexp.MustCompile(`^(tmp|root|var/(cache|log/(apt|dpkg\.log|alternatives\.log)|lib/(apt|dpkg)))(/|$)`)
	var found []string
	err := filepath.WalkDir(m.folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(m.folder, path)
		if err == nil && !notes.MatchString(name) {
			found = append(found, name)
		}
		return err
	})
	if err != nil {
		m.Fatal(err)
	}
	return found
}

// named returns the files whose name contains almanac, also those of dpkg.
func (m machine) named() []string {
	m.Helper()
	return strings.Fields(m.run(`find / -xdev -path /tmp -prune -o -iname '*almanac*' ! -name 99almanac-lab -print`))
}

// guided returns a script with the user's commands of docs/install.md.
func guided(t *testing.T) string {
	t.Helper()
	commands := regexp.MustCompile(`(?m)^\$ (almanac .*)$`).FindAllStringSubmatch(repository.Read(t, repository.InstallPage), -1)
	if len(commands) == 0 {
		t.Fatal("docs/install.md has no commands of users")
	}
	var script strings.Builder
	for _, command := range commands {
		script.WriteString("user " + command[1] + "\n")
	}
	return script.String()
}

// timed prints how long a step takes: these are the figures of docs/install.md.
func (m machine) timed(what string, step func()) {
	begin := time.Now()
	step()
	m.Logf("%s: %s", what, time.Since(begin).Round(100*time.Millisecond))
}

//make:test-packages
func TestPackagesLeadToAReservationAndLeaveNothing(t *testing.T) {
	needsRoot(t)
	before, after := buildPackages(t, "0.1.0"), buildPackages(t, "0.2.0")
	for _, suite := range suites {
		t.Run(suite, func(t *testing.T) {
			m := cleanMachine(t, suite)
			m.timed("apt install ./almanac_*.deb, with what it depends on", func() { m.install(before, "almanac_*.deb") })
			m.timed("start, first reservation, page", func() {
				out := m.serve(guided(t) + `user almanac reservation list -f value -c Name -c Status; page /dashboard/`)
				if !strings.Contains(out, "\nfirst active\n") || !strings.Contains(out, " 200 OK") || !strings.Contains(out, "<title>") {
					t.Errorf("the commands of the guide and the page: %s", out)
				}
			})
			m.safe()
			m.run(`printf '[DEFAULT]\ndebug = true\n' >> /etc/almanac/almanac.conf`)
			m.timed("upgrade", func() { m.install(after, "almanac_*.deb") })
			m.safe()
			out := m.serve(`almanac version -f value -c Version; user almanac reservation list -f value -c Name; page /dashboard/`)
			if !strings.HasPrefix(out, "0.2.0\nfirst\n") || !strings.Contains(out, " 200 OK") {
				t.Errorf("after the upgrade: %s", out)
			}
			if conf := m.run("cat /etc/almanac/almanac.conf"); !strings.Contains(conf, "debug = true") {
				t.Errorf("the upgrade has changed the configuration:\n%s", conf)
			}

			m.timed("purge", func() { m.run("apt-get -y -qq purge almanac") })
			if left := m.named(); len(left) > 0 {
				t.Errorf("purge leaves %s", left)
			}
			m.run("getent passwd almanac")
			clean := m.files()
			m.install(after, "almanac_*.deb")
			m.serve("page /healthcheck >/dev/null")
			m.run("apt-get -y -qq purge almanac")
			if d := cmp.Diff(clean, m.files()); d != "" {
				t.Errorf("purge leaves or takes files (-before +after):\n%s", d)
			}
		})
	}
}

// safe checks the modes of the configuration and of the data, and that systemd accepts the units.
func (m machine) safe() {
	m.Helper()
	for path, want := range map[string]string{
		"/etc/almanac":              "750 root almanac",
		"/etc/almanac/almanac.conf": "640 root almanac",
		"/etc/almanac/hosts.yaml":   "640 root almanac",
		"/var/lib/almanac":          "750 almanac almanac",
		"/var/log/almanac":          "750 almanac almanac",
	} {
		if got := strings.TrimSpace(m.run("stat -c '%a %U %G' " + path)); got != want {
			m.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if out := m.run("systemd-analyze verify --man=no almanacd.service almanacd@api.service"); strings.Contains(out, "almanacd") {
		m.Errorf("the units: %s", out)
	}
	m.run(`for shell in bash; do $shell -n /usr/share/bash-completion/completions/almanac; done
		for page in man1/almanac-reservation-create.1 man8/almanacd-db-sync.8 man5/almanac.conf.5; do zcat /usr/share/man/$page.gz | grep -q '^.TH'; done`)
}

// The client needs nothing and makes no user. The package with the service takes its files over, and is
// never removed for it.
//
//make:test-packages
func TestPackagesOfTheClientAreTheCommandLineAlone(t *testing.T) {
	needsRoot(t)
	dist := buildPackages(t, "0.1.0")
	m := cleanMachine(t, "trixie")
	before := m.run("dpkg-query -W -f '${Package}\n'")
	m.install(dist, "almanac-client_*.deb")
	if d := cmp.Diff(strings.Fields(before+"almanac-client"), strings.Fields(m.run("dpkg-query -W -f '${Package}\n'")), cmpopts.SortSlices(strings.Compare)); d != "" {
		t.Errorf("packages (-want +got):\n%s", d)
	}
	if out := m.run("almanac version -f value -c Version; getent passwd almanac || echo no user"); out != "0.1.0\nno user\n" {
		t.Errorf("the client: %s", out)
	}
	m.install(dist, "almanac_*.deb")
	if out := m.run("apt-get -y -qq purge almanac-client >/dev/null; almanac version -f value -c Version"); out != "0.1.0\n" {
		t.Errorf("with the service: %s", out)
	}
	client, err := filepath.Glob(dist + "/almanac-client_*.deb")
	if err != nil || len(client) != 1 {
		t.Fatal(client, err)
	}
	built.Shell(t, ".", nil, "cp", client[0], m.folder+"/tmp/client.deb")
	if out := m.run("apt-get -y -qq install /tmp/client.deb >/dev/null 2>&1 && echo installed || true; dpkg-query -W -f '${Status}\\n' almanac"); out != "install ok installed\n" {
		t.Errorf("the client on a machine with the service: %s", out)
	}
}

//make:test-packages
func TestPackagesPleaseLintian(t *testing.T) {
	needsRoot(t)
	found, err := filepath.Glob(buildPackages(t, "0.1.0") + "/*.deb")
	if err != nil || len(found) != 4 {
		t.Fatal(found, err)
	}
	out := built.Shell(t, ".", nil, built.Program(t, "lintian"), append([]string{"--allow-root", "--fail-on", "error,warning"}, found...)...)
	if out != "" {
		t.Error(out)
	}
}

//make:test-packages
func TestPackagesOfTheAgentAndTheServiceShareFoldersWithoutHarm(t *testing.T) {
	needsRoot(t)
	dist := buildPackages(t, "0.1.0")
	m := cleanMachine(t, suites[0])
	m.install(dist, "almanac_*.deb")
	m.install(dist, "almanac-power_*.deb")
	if out := m.run(`systemd-analyze verify --man=no almanac-power.service; stat -c '%a %G' /etc/almanac/power.yaml`); out != "640 almanac\n" {
		t.Errorf("the agent: %s", out)
	}
	m.serve("page /healthcheck >/dev/null")
	m.run(`touch /var/lib/almanac/power-agent.json && apt-get -y -qq purge almanac`)
	if left := m.run("ls /var/lib/almanac /etc/almanac"); left != "/etc/almanac:\nalmanac-power.conf\npower.yaml\n\n/var/lib/almanac:\npower-agent.json\n" {
		t.Errorf("without the service: %s", left)
	}
	m.install(dist, "almanac_*.deb")
	m.serve("page /healthcheck >/dev/null")
	m.run("apt-get -y -qq purge almanac-power")
	if left := m.run("ls /var/lib/almanac"); !strings.Contains(left, "almanac.db\n") || strings.Contains(left, "power") {
		t.Errorf("without the agent: %s", left)
	}
	m.run("apt-get -y -qq purge almanac")
	if left := m.named(); len(left) > 0 {
		t.Errorf("purge of both leaves %s", left)
	}
}

//make:test-packages
func TestPackagesOfThePluginAreFoundByNovasPython(t *testing.T) {
	needsRoot(t)
	dist := buildPackages(t, "0.1.0")
	for _, suite := range suites {
		t.Run(suite, func(t *testing.T) {
			m := cleanMachine(t, suite)
			m.run("apt-get -y -qq install --no-install-recommends python3-nova </dev/null")
			m.install(dist, "python3-almanac-nova_*.deb")
			out := m.run(`cd / && python3 -W ignore -c 'import almanac_nova, importlib.metadata as m; print(almanac_nova.AlmanacFilter.__name__, m.version("almanac-nova"))'`)
			if out != "AlmanacFilter 0.1.0\n" {
				t.Errorf("the plugin: %s", out)
			}
			m.run("apt-get -y -qq purge python3-almanac-nova")
			if left := m.named(); len(left) > 0 {
				t.Errorf("purge leaves %s", left)
			}
		})
	}
}

// Debian's rpm installs the package into a root of Debian: this shows the files, their modes and the
// scripts, and not what Red Hat's packages have under the names of the dependencies.
//
//make:test-packages
func TestPackagesForRPMHaveTheSameServiceAndKeepItsData(t *testing.T) {
	needsRoot(t)
	dist := buildPackages(t, "0.1.0")
	m := cleanMachine(t, "trixie")
	m.run("apt-get -y -qq install --no-install-recommends rpm systemd procps </dev/null")
	rpm, err := filepath.Glob(dist + "/almanac-0.1.0-*.rpm")
	if err != nil || len(rpm) != 1 {
		t.Fatal(rpm, err)
	}
	built.Shell(t, ".", nil, "cp", rpm[0], m.folder+"/tmp/almanac.rpm")
	m.run("rpm --install --nodeps /tmp/almanac.rpm")
	m.safe()
	out := m.serve(`user almanac reservation create first --quantity 1 --duration 1h -f value -c Hosts`)
	if out != "node-01\n" {
		t.Errorf("the first reservation: %s", out)
	}
	m.run("rpm --erase almanac && rm /tmp/almanac.rpm")
	kept := slices.DeleteFunc(m.named(), func(path string) bool { return strings.HasPrefix(path, "/var/lib/almanac/almanac.db") })
	if d := cmp.Diff([]string{"/var/lib/almanac", "/var/log/almanac"}, slices.Sorted(slices.Values(kept))); d != "" {
		t.Errorf("what stays (-want +got):\n%s", d)
	}
}

// mostOfAnImage is the largest size of the image in bytes.
const mostOfAnImage = 60 << 20

//make:test-packages
func TestPackagesInAnImageServeFromAReadOnlyRootWithoutPrivileges(t *testing.T) {
	needsRoot(t)
	if _, err := exec.LookPath("buildah"); err != nil {
		built.Shell(t, ".", []string{"DEBIAN_FRONTEND=noninteractive"}, "apt-get", "-y", "-qq", "install", "--no-install-recommends", "buildah")
	}
	dist := build(t, clone(t), "image", "VERSION=0.1.0")
	image := filepath.Join(dist, "almanac-0.1.0-image-"+runtime.GOARCH+".tar")
	info, err := os.Stat(image)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the image has %d MB", info.Size()>>20)
	if info.Size() > mostOfAnImage {
		t.Errorf("the image has %d bytes, want at most %d", info.Size(), mostOfAnImage)
	}

	store := []string{"--storage-driver", "vfs", "--root", filepath.Join(t.TempDir(), "store"), "--runroot", filepath.Join(t.TempDir(), "run")}
	buildah := func(arguments ...string) string {
		t.Helper()
		return strings.TrimSpace(built.Shell(t, ".", nil, "buildah", append(slices.Clone(store), arguments...)...))
	}
	container := buildah("from", "--quiet", "docker-archive:"+image)
	config := buildah("inspect", "--format", "{{.Docker.Config.User}} {{.Docker.Config.Entrypoint}} {{.Docker.Config.Healthcheck.Test}}", container)
	if config != "65532:65532 [/usr/bin/almanacd] [CMD /usr/bin/almanacd healthcheck]" {
		t.Errorf("the image runs: %s", config)
	}
	// The root is read-only except for the volume, and has a loopback of its own.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private", "bash", "-euc", `
		ip link set lo up
		mount --bind "$1" "$1"
		mount --bind "$1/var/lib/almanac" "$1/var/lib/almanac"
		mount -o remount,bind,ro "$1"
		! touch "$1/etc/almanac/written" 2>/dev/null
		chroot --userspec=65532:65532 "$1" /usr/bin/almanacd &
		service=$!
		until chroot --userspec=65532:65532 "$1" /usr/bin/almanacd healthcheck; do sleep 0.1; done
		exec 3<>/dev/tcp/127.0.0.1/1234
		printf 'GET /dashboard/ HTTP/1.0\r\n\r\n' >&3
		head -1 <&3
		kill $service
		wait $service`, "-", buildah("mount", container))
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), " 200 OK") || !strings.Contains(string(out), "almanac stopped") {
		t.Errorf("in the chroot: %v\n%s", err, out)
	}
	fmt.Fprint(t.Output(), buildah("rm", container))
}
