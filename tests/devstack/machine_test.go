// SPDX-License-Identifier: Apache-2.0

package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// stack is a machine with DevStack and Almanac's plugin. Its services are those of the lab, except
// nova-scheduler, which is its own.
type stack struct {
	t           *testing.T
	cloud       labtest.LabCloud
	admin       *labtest.REST
	folder      string
	environment []string
	user        string // Almanac's user in Keystone
	database    string
	vhosts      []string // Almanac's, and that of the nova-scheduler behind it
	port        int
	glance      string // the configuration of Glance before the plugin
}

// neighbours lists the configuration files of other services that the plugin changes.
var neighbours = []string{"nova/nova.conf", "glance/glance-api.conf", "placement/placement.conf"}

// newMachine prepares a machine without services. devstack is a checkout of DevStack, or its
// stand-in; localrc is the content of that section of local.conf.
func newMachine(t *testing.T, devstack string, localrc ...string) *stack {
	t.Helper()
	s := &stack{t: t, folder: t.TempDir()}
	for _, name := range []string{"sudo", "systemctl"} {
		s.write("bin/"+name, repository.Read(t, devstackFolder+"/bin/"+name))
	}
	own, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(s.folder+"/opt", 0o755), os.Symlink(own, s.folder+"/opt/almanac")); err != nil {
		t.Fatal(err)
	}
	s.devStack(devstack, append([]string{
		"STACK_USER=$(id -un)", "OFFLINE=True",
		"DEST=" + s.folder + "/opt", "DATA_DIR=" + s.folder + "/opt/data",
		"HOST_IP=127.0.0.1", "SERVICE_LISTEN_ADDRESS=127.0.0.1",
		"ENABLED_SERVICES=key,mysql,rabbit,n-api,n-sch,g-api,placement-api,tempest",
		"enable_plugin almanac https://github.com/almanac-cloud/almanac",
		"ALMANAC_BIN_DIR=" + s.folder + "/usr", "ALMANAC_CONF_DIR=" + s.folder + "/etc",
	}, localrc...))
	s.environment = s.variables()
	return s
}

// newStack prepares a machine with the services of the lab.
func newStack(t *testing.T, devstack string, localrc ...string) *stack {
	t.Helper()
	cloud := labtest.OpenStack(t)
	labtest.TakeSchedulerAway(t)
	broker, errBroker := url.Parse(labtest.NovaTransport(t))
	database, errDatabase := url.Parse(labtest.NovaAPIDatabase(t))
	if err := errors.Join(errBroker, errDatabase); err != nil {
		t.Fatal(err)
	}
	id, port := strings.ToLower(rand.Text()[:8]), built.UnusedPort(t)
	user, name, vhosts := "almanac-"+id, "almanac_devstack_"+id, []string{"almanac-" + id, "behind-" + id}
	s := newMachine(t, devstack, append([]string{
		"ADMIN_PASSWORD=lab", "SERVICE_PASSWORD=unmistakable-" + rand.Text(),
		"DATABASE_USER=almanac", "DATABASE_PASSWORD=almanac", "MYSQL_HOST=127.0.0.1",
		"BASE_SQL_CONN=mysql+pymysql://almanac:almanac@" + database.Host,
		"RABBIT_USERID=almanac", "RABBIT_PASSWORD=almanac",
		"ALMANAC_BINARIES=" + built.Commands(), "ALMANAC_USER_NAME=" + user, "ALMANAC_DATABASE=" + name,
		"ALMANAC_RABBIT_VHOST=" + vhosts[0], "ALMANAC_BEHIND_VHOST=" + vhosts[1], "ALMANAC_BEHIND_HOST=behind",
		fmt.Sprintf("ALMANAC_SERVICE_PORT=%d", port), fmt.Sprintf("ALMANAC_INVENTORY_PORT=%d", built.UnusedPort(t)),
		"ALMANAC_TIMEOUT=240", "ALMANAC_RESERVABLE_HOSTS='cmp-00[1-2]'",
	}, localrc...)...)
	s.cloud, s.admin, s.user, s.database, s.vhosts, s.port = cloud, cloud.REST(t, labtest.Admin), user, name, vhosts, port
	s.environment = append(s.environment,
		"LAB_KEYSTONE="+strings.TrimSuffix(cloud.AuthURL, "/v3"), "LAB_RABBITMQ_PORT="+broker.Port())
	s.files(database.Port())
	s.forgetService()
	t.Cleanup(func() {
		if t.Failed() { // otherwise the test did it
			s.run("unstack")
			s.run("clean")
		}
		s.endProcesses()
	})
	return s
}

// forgetService removes from Keystone what a killed test has left.
func (s *stack) forgetService() {
	var found struct{ Services []struct{ ID string } }
	s.admin.Must(http.MethodGet, "identity", "/services?type=reservation", nil, &found)
	for _, service := range found.Services {
		s.admin.Must(http.MethodDelete, "identity", "/services/"+service.ID, nil, nil)
	}
}

// files creates the files that stack.sh writes before the plugin runs.
func (s *stack) files(databasePort string) {
	s.t.Helper()
	lab := os.Getenv("ALMANAC_LAB")
	nova := repository.Read(s.t, lab+"/nova/nova.conf") + repository.Read(s.t, lab+"/nova/control.conf")
	nova = regexp.MustCompile(`(?m)^enable_isolated_aggregate_filtering.*\n`).ReplaceAllString(nova, "")
	program, err := filepath.Abs("../openstack/program")
	if err != nil {
		s.t.Fatal(err)
	}
	own := s.folder + "/opt/almanac"
	for path, text := range map[string]string{
		neighbours[0]:        nova,
		neighbours[1]:        "[DEFAULT]\nworkers = 1\n",
		neighbours[2]:        "[placement]\nrandomize_allocation_candidates = true\n",
		"bin/nova-scheduler": "#!/bin/sh\nPYTHONPATH=\"" + own + "/plugin\" exec \"" + program + "\" nova.cmd.scheduler \"$@\"\n",
		"bin/rabbitmqctl":    "#!/bin/sh\nexec \"" + lab + "/rabbitmqctl\" \"$@\"\n",
		"bin/mysql":          "#!/bin/sh\nexec /usr/bin/mysql --no-defaults --port=" + databasePort + " \"$@\"\n",
	} {
		s.write(path, text)
	}
	s.glance = repository.Read(s.t, filepath.Join(s.folder, neighbours[1]))
}

func (s *stack) write(path, text string) {
	s.t.Helper()
	path = filepath.Join(s.folder, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// devStack copies DevStack to the machine, with these settings.
func (s *stack) devStack(from string, localrc []string) {
	s.t.Helper()
	s.write("devstack/.localrc.auto", strings.Join(localrc, "\n")+"\n")
	from, err := filepath.Abs(from)
	if err != nil {
		s.t.Fatal(err)
	}
	parts, err := filepath.Glob(from + "/*")
	if err != nil || len(parts) == 0 {
		s.t.Fatalf("there is no DevStack in %s: %v", from, err)
	}
	for _, part := range parts {
		if filepath.Base(part) == "extras.d" {
			continue // it installs Tempest
		}
		if err := os.Symlink(part, filepath.Join(s.folder, "devstack", filepath.Base(part))); err != nil {
			s.t.Fatal(err)
		}
	}
}

// variables returns the environment of DevStack.
func (s *stack) variables() []string {
	list := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "OS_") || strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
	settings, err := filepath.Abs(devstackFolder + "/lab-settings")
	if err != nil {
		s.t.Fatal(err)
	}
	return append(list, "PATH="+s.folder+"/bin:"+os.Getenv("PATH"), "FOLDER="+s.folder, "TOP_DIR="+s.folder+"/devstack", "LAB_SETTINGS="+settings)
}

// run runs the phases of a mode and returns their output.
func (s *stack) run(mode string) (said string, failed bool) {
	s.t.Helper()
	c := exec.CommandContext(context.WithoutCancel(s.t.Context()), devstackFolder+"/run", mode)
	c.Env = s.environment
	out, err := c.CombinedOutput()
	return string(out), err != nil
}

// runs is run for a mode that must succeed.
func (s *stack) runs(mode string) (said string) {
	s.t.Helper()
	said, failed := s.run(mode)
	if failed {
		s.t.Fatalf("%s:\n%s\n%s", mode, said, s.logs())
	}
	return said
}

// command runs one of the installed commands as the admin of the cloud.
func (s *stack) command(name string, arguments ...string) (said string, failed bool) {
	c := exec.CommandContext(s.t.Context(), filepath.Join(s.folder, "usr", name), arguments...)
	c.Env = slices.Clone(s.environment)
	if s.admin != nil {
		c.Env = append(c.Env, s.cloud.Environment(labtest.Admin)...)
	}
	out, err := c.CombinedOutput()
	return string(out), err != nil
}

// units returns the process ids of the running units.
func (s *stack) units() map[string]int {
	s.t.Helper()
	files, err := filepath.Glob(s.folder + "/systemd/*.pid")
	if err != nil {
		s.t.Fatal(err)
	}
	running := map[string]int{}
	for _, file := range files {
		id, err := strconv.Atoi(strings.TrimSpace(repository.Read(s.t, file)))
		if err == nil && syscall.Kill(id, 0) == nil {
			running[strings.TrimSuffix(filepath.Base(file), ".service.pid")] = id
		}
	}
	return running
}

// endProcesses kills what a failed test has left running.
func (s *stack) endProcesses() {
	for unit, id := range s.units() {
		if err := syscall.Kill(-id, syscall.SIGKILL); err != nil {
			s.t.Errorf("kill %s: %v", unit, err)
		}
	}
}

// logs returns the end of the units' logs.
func (s *stack) logs() (text string) {
	files, _ := filepath.Glob(s.folder + "/systemd/*.log") // the pattern is valid
	for _, file := range files {
		lines := strings.SplitAfter(repository.Read(s.t, file), "\n")
		text += filepath.Base(file) + ":\n" + strings.Join(lines[max(0, len(lines)-20):], "")
	}
	return text
}
