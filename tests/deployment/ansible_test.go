// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/repository"
)

const ansibleFolder = "../../packaging/ansible"

func TestTheAnsibleRoleIsClean(t *testing.T) {
	lint := built.Program(t, "ansible-lint")
	own := []string{"ANSIBLE_HOME=" + t.TempDir(), "HOME=" + t.TempDir()}
	built.Shell(t, ansibleFolder, own, "ansible-playbook", "--syntax-check", "-i", "inventory.example", "almanac.yml")
	built.Shell(t, ansibleFolder, own, lint, "--offline", "--strict", "almanac.yml", "roles/almanac")
	if d := cmp.Diff(repository.Read(t, repository.OpsFolder+"/glance-property-protections.conf"), repository.Read(t, ansibleFolder+"/roles/almanac/files/property-protections-rules.conf")); d != "" {
		t.Errorf("Glance's rules (-examples +role):\n%s", d)
	}
}

// play is a cloud of one machine, this one, to which the role deploys Almanac.
type play struct {
	t         *testing.T
	folder    string // everything that the role writes
	inventory string
	variables map[string]any
}

// newPlay prepares the folders that the role expects of a machine. The address of all three groups
// is 127.0.0.1.
func newPlay(t *testing.T, variables map[string]any) *play {
	t.Helper()
	built.Program(t, "ansible-playbook")
	p := &play{t: t, folder: t.TempDir()}
	engine, err := filepath.Abs("testdata/ansible/engine")
	if err != nil {
		t.Fatal(err)
	}
	p.variables = map[string]any{
		"almanac_config_directory": p.at("etc"), "almanac_power_config_directory": p.at("etc"), "almanac_unit_directory": p.at("units"), "almanac_logrotate_directory": p.at("logrotate"),
		"almanac_log_directory": p.at("log"), "almanac_haproxy_directory": p.at("haproxy"), "almanac_neighbors_directory": p.at("neighbors"),
		"almanac_prometheus_directory": p.at("prometheus/prometheus.yml.d"),
		"almanac_owner":                fmt.Sprint(os.Getgid()), "almanac_power_owner": fmt.Sprint(os.Getgid()),
		"almanac_container_engine": engine, "almanac_image": "almanac:1.2.3", "almanac_no_log": false,
		"almanac_power_probe":  []string{filepath.Join(built.Commands(), "almanac-power")},
		"almanac_keystone_url": "http://127.0.0.1:1/v3", "almanac_keystone_password": "keystone$word",
		"almanac_database_address": "127.0.0.1", "almanac_database_password": `p@ss/'\n$word`,
		"almanac_rabbitmq_nodes": []string{"127.0.0.1:1"}, "almanac_rabbitmq_password": "r@bbit/$word",
		"almanac_haproxy_bind": []string{"127.0.0.1:1"},
		"almanac_public_url":   "https://reserve.example.org/v1", "almanac_internal_url": "http://127.0.0.1:1/v1",
	}
	maps.Copy(p.variables, variables)
	for _, folder := range []string{"units", "logrotate", "haproxy", "neighbors", "prometheus"} {
		if err := os.Mkdir(p.at(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.inventory = "[almanac-api]\nlocalhost\n[almanac-power]\nlocalhost\n[almanac-loadbalancer]\nlocalhost\n" +
		"[all:vars]\nansible_connection=local\nansible_become=false\nalmanac_api_address=127.0.0.1\n"
	return p
}

func (p *play) at(name string) string { return filepath.Join(p.folder, name) }

// run carries an action out, and returns what Ansible says.
func (p *play) run(action string) string {
	p.t.Helper()
	said, err := p.command(action, "almanac.yml").CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", action, err, said)
	}
	if strings.Contains(string(said), "Invalid characters were found in group names") {
		p.t.Errorf("%s warns of the names of the groups:\n%s", action, said)
	}
	return string(said)
}

// command returns the command that carries an action out with a playbook.
func (p *play) command(action, playbook string) *exec.Cmd {
	p.t.Helper()
	variables, err := json.Marshal(p.variables)
	if err != nil {
		p.t.Fatal(err)
	}
	for name, text := range map[string]string{"inventory": p.inventory, "variables.json": string(variables)} {
		if err := os.WriteFile(p.at(name), []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	c := exec.CommandContext(p.t.Context(), "ansible-playbook", "-i", p.at("inventory"), "-e", "@"+p.at("variables.json"), "-e", "almanac_action="+action, playbook)
	c.Dir = ansibleFolder
	c.Env = append(os.Environ(), "ANSIBLE_HOME="+p.at("home"), "ANSIBLE_LOCAL_TEMP="+p.at("home/tmp"), "ANSIBLE_REMOTE_TEMP="+p.at("home/remote"), "ANSIBLE_NOCOLOR=1",
		"ANSIBLE_ROLES_PATH=roles", "ALMANACD="+filepath.Join(built.Commands(), "almanacd"))
	return c
}

// start starts almanacd with the file that the role has written.
func (p *play) start(environment ...string) *built.Service {
	p.t.Helper()
	c := exec.CommandContext(context.WithoutCancel(p.t.Context()), filepath.Join(built.Commands(), "almanacd"), "--config-file", p.at("etc/almanac.conf"))
	c.Dir, c.Env = p.t.TempDir(), append(os.Environ(), environment...)
	return built.Serve(p.t, c)
}

// balance starts HAProxy with the file that the role has written. It returns what HAProxy says of the
// backend's servers.
func (p *play) balance() (status func() string) {
	p.t.Helper()
	program, socket := built.Program(p.t, "haproxy"), p.at("haproxy.sock")
	settings := "global\n stats socket " + socket + "\ndefaults\n timeout connect 2s\n timeout client 60s\n timeout server 60s\n"
	if err := os.WriteFile(p.at("haproxy.cfg"), []byte(settings), 0o600); err != nil {
		p.t.Fatal(err)
	}
	files := []string{"-f", p.at("haproxy.cfg"), "-f", p.at("haproxy/almanac.cfg")}
	built.Shell(p.t, p.folder, nil, program, append([]string{"-c"}, files...)...)
	proxy := exec.CommandContext(p.t.Context(), program, append([]string{"-db"}, files...)...)
	if err := proxy.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = proxy.Wait() }) // the end of the context has killed it
	return func() string { return said(p.t, socket, "show stat") }
}

// said sends a command to HAProxy's socket and returns the answer.
func said(t *testing.T, socket, command string) string {
	t.Helper()
	connection, err := net.Dial("unix", socket)
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	if _, err := fmt.Fprintln(connection, command); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// No cloud, broker and database is at the addresses of the file, so almanacd has a list of hosts and SQLite
// in their place; all else is as the role wrote it.
func TestTheAnsibleRoleConfiguresAlmanacAndItsBalancer(t *testing.T) {
	port, front := built.UnusedPort(t), built.UnusedPort(t)
	p := newPlay(t, map[string]any{
		"almanac_api_port": port, "almanac_haproxy_bind": []string{fmt.Sprintf("127.0.0.1:%d", front)},
		"almanac_nova_mode": "interpose", "almanac_nova_transport_url": "rabbit://nova:n@127.0.0.1:1/", "almanac_nova_behind_transport_url": "rabbit://nova:n@127.0.0.1:1/behind",
		"almanac_options":        map[string]any{"limits": map[string]any{"max_hosts_per_project": 4}, "api": map[string]any{"drain_delay": "0s"}},
		"almanac_power_machines": []any{map[string]any{"host": "cmp-1", "driver": "simulated", "boot": "20s", "shutdown": "5s"}},
	})
	p.run("config")
	if again := p.run("config"); !strings.Contains(again, "changed=0") {
		t.Errorf("a second run changes something:\n%s", again)
	}
	for file, want := range map[string]string{
		"etc/almanac.conf":                                 "max_hosts_per_project = 4",
		"etc/almanac-power.conf":                           "machines_file = " + p.at("etc/power.yaml"),
		"units/almanacd.service":                           "ExecStart=" + p.variables["almanac_container_engine"].(string) + " run --rm --network=host --read-only",
		"logrotate/almanac":                                p.at("log") + "/*.log {",
		"neighbors/nova.conf":                              "[scheduler]\nenable_isolated_aggregate_filtering = true\n[notifications]\nnotification_format = both\n",
		"neighbors/placement.conf":                         "[placement]\nallocation_conflict_retry_count = 1\n",
		"neighbors/glance.conf":                            "property_protection_rule_format = roles\n",
		"neighbors/glance/property-protections-rules.conf": "CUSTOM_ALMANAC",
	} {
		if text := repository.Read(t, p.at(file)); !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", file, want, text)
		}
	}
	for _, file := range []string{"etc/almanac.conf", "etc/almanac-power.conf"} {
		if info, err := os.Stat(p.at(file)); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s has passwords, and its mode is %v (%v)", file, info.Mode(), err)
		}
	}
	built.Shell(t, p.folder, nil, built.Program(t, "promtool"), "check", "config", p.at("prometheus/prometheus.yml.d/almanac.yml"))
	built.Shell(t, p.folder, nil, filepath.Join(built.Commands(), "almanac-power"), "--config-file", p.at("etc/almanac-power.conf"), "config", "validate")

	status := p.balance()
	s := p.start("OS_DATABASE__CONNECTION=sqlite:///almanac.db", "OS_DEFAULT__LOG_DIR=", "OS_SCHEDULER__MODE=off", "OS_NOVA__NOTIFICATIONS=false",
		"OS_INVENTORY__SOURCE=file", "OS_INVENTORY__HOSTS_FILE="+filepath.Join(built.NewFolder(t, built.TenHosts), "hosts.yaml"))
	built.Eventually(t, "HAProxy reports that almanacd is up", func() bool {
		return strings.Contains(status(), ",UP,") && !strings.Contains(status(), ",DOWN,")
	})
	for path, want := range map[string]int{"/": http.StatusOK, "/healthcheck": http.StatusOK, "/v1/reservations": http.StatusUnauthorized, "/metrics": http.StatusNotFound} {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", front, path))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("through HAProxy, GET %s is answered with %d, want %d", path, answer.StatusCode, want)
		}
	}
	p.run("check")
	s.Stop(t)
	built.Eventually(t, "HAProxy reports that almanacd is down", func() bool { return strings.Contains(status(), ",DOWN,") })
}

func TestTheAnsibleRoleConfiguresThePackage(t *testing.T) {
	p := newPlay(t, map[string]any{
		"almanac_install": "package", "almanac_log_directory": "/var/log/almanac",
		"almanac_probe":               []string{filepath.Join(built.Commands(), "almanacd")},
		"almanac_command":             []string{filepath.Join(built.Commands(), "almanacd"), "--config-file={{ almanac_config_file }}"},
		"almanac_neighbors_directory": "", "almanac_prometheus_directory": "", "almanac_haproxy_directory": "",
	})
	p.run("config")
	if text := repository.Read(t, p.at("etc/almanac.conf")); !strings.Contains(text, "log_dir = /var/log/almanac\n") {
		t.Errorf("almanac.conf does not log where the package may write:\n%s", text)
	}
	for _, folder := range []string{"units", "logrotate", "neighbors", "prometheus", "haproxy"} {
		if files, err := os.ReadDir(p.at(folder)); err != nil || len(files) > 0 {
			t.Errorf("the role has written %v, which the package has or nobody asked for (%v)", files, err)
		}
	}
}

// The first action of an operator may be the one that only writes files.
func TestTheAnsibleRoleRefusesToConfigureWhatIsNotInstalled(t *testing.T) {
	for want, variables := range map[string]map[string]any{
		"the package almanac is not installed here":       {"almanac_install": "package", "almanac_probe": []string{"/nowhere/almanacd"}},
		"does not run from almanac_image":                 {"almanac_container_engine": "/bin/false"},
		"name an image":                                   {"almanac_container_engine": "/bin/false", "almanac_image": ""},
		"the package almanac-power is not installed here": {"almanac_power_probe": []string{"/nowhere/almanac-power"}},
	} {
		p := newPlay(t, variables)
		said, err := p.command("config", "almanac.yml").CombinedOutput()
		if err == nil || !strings.Contains(string(said), want) {
			t.Errorf("no answer %q (%v):\n%s", want, err, said)
		}
		file := "etc/almanac.conf"
		if strings.Contains(want, "almanac-power") {
			file = "etc/almanac-power.conf"
		}
		if _, err := os.Stat(p.at(file)); err == nil {
			t.Errorf("%q: the role has written %s", want, file)
		}
	}
}

// The cases are the hosts of one inventory, each with the variables of a cloud of Kolla-Ansible. Its prechecks
// refuse one address with TLS on one side only.
func TestTheAnsibleRoleListensWhereKollaAnsiblePromises(t *testing.T) {
	const internal, external = "192.0.2.10", "198.51.100.10"
	const internalTLS, externalTLS = " ssl crt /etc/haproxy/certificates/haproxy-internal.pem", " ssl crt /etc/haproxy/certificates/haproxy.pem"
	kolla := func(externalVIP string, tlsInternal, tlsExternal bool) map[string]any {
		protocol := map[bool]string{false: "http", true: "https"}
		return map[string]any{
			"kolla_internal_vip_address": internal, "kolla_internal_fqdn": "int.example.org", "kolla_enable_tls_internal": tlsInternal, "internal_protocol": protocol[tlsInternal],
			"kolla_external_vip_address": externalVIP, "kolla_external_fqdn": "ext.example.org", "kolla_enable_tls_external": tlsExternal, "public_protocol": protocol[tlsExternal],
			"haproxy_enable_external_vip": map[bool]string{false: "no", true: "yes"}[externalVIP != internal],
		}
	}
	cases := map[string]struct {
		cloud map[string]any
		binds string
		urls  string
	}{
		"one-address":          {kolla(internal, false, false), internal + ":1234", "http://ext.example.org:1234/v1 http://int.example.org:1234/v1"},
		"one-address-with-TLS": {kolla(internal, true, true), internal + ":1234" + internalTLS, "https://ext.example.org:1234/v1 https://int.example.org:1234/v1"},
		"two-addresses":        {kolla(external, false, false), internal + ":1234\n" + external + ":1234", "http://ext.example.org:1234/v1 http://int.example.org:1234/v1"},
		"external-TLS":         {kolla(external, false, true), internal + ":1234\n" + external + ":1234" + externalTLS, "https://ext.example.org:1234/v1 http://int.example.org:1234/v1"},
		"internal-TLS":         {kolla(external, true, false), internal + ":1234" + internalTLS + "\n" + external + ":1234", "http://ext.example.org:1234/v1 https://int.example.org:1234/v1"},
		"both-with-TLS":        {kolla(external, true, true), internal + ":1234" + internalTLS + "\n" + external + ":1234" + externalTLS, "https://ext.example.org:1234/v1 https://int.example.org:1234/v1"},
	}
	p := newPlay(t, nil)
	maps.DeleteFunc(p.variables, func(name string, _ any) bool {
		return strings.HasPrefix(name, "almanac_haproxy_") || strings.HasSuffix(name, "_url")
	})
	hosts := map[string]any{}
	for name, c := range cases {
		hosts[name] = c.cloud
		c.cloud["almanac_haproxy_directory"] = p.at(name)
		if err := os.Mkdir(p.at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	inventory, err := json.Marshal(map[string]any{"all": map[string]any{
		"vars":     map[string]any{"ansible_connection": "local", "ansible_become": false, "ansible_python_interpreter": "auto_silent"},
		"children": map[string]any{"almanac-loadbalancer": map[string]any{"hosts": hosts}, "almanac-api": map[string]any{"hosts": map[string]any{"ctl-1": nil}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.inventory = string(inventory)
	const playbook = `
- hosts: almanac-loadbalancer
  gather_facts: false
  tasks:
    - ansible.builtin.import_role: {name: almanac, tasks_from: loadbalancer.yml}
    - ansible.builtin.copy: {content: "{{ almanac_public_url }} {{ almanac_internal_url }}", dest: "{{ almanac_haproxy_directory }}/urls"}
`
	if err := os.WriteFile(p.at("playbook.yml"), []byte(playbook), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := p.command("config", p.at("playbook.yml")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for name, want := range cases {
		frontend := repository.Read(t, p.at(name+"/almanac.cfg"))
		if binds := regexp.MustCompile(`(?m)^ +bind (.+)$`).FindAllStringSubmatch(frontend, -1); joined(binds) != want.binds {
			t.Errorf("%s: HAProxy listens at\n%s\nwant\n%s", name, joined(binds), want.binds)
		}
		if urls := repository.Read(t, p.at(name+"/urls")); urls != want.urls {
			t.Errorf("%s: the addresses in Keystone are %s, want %s", name, urls, want.urls)
		}
	}
}

// joined returns the first groups of matches, a line each.
func joined(matches [][]string) string {
	var lines []string
	for _, m := range matches {
		lines = append(lines, m[1])
	}
	return strings.Join(lines, "\n")
}

// Database, virtual host, users and endpoints are created, and almanacd serves with them.
func TestTheAnsibleRoleDeploysAlmanacBesideRealServices(t *testing.T) {
	built.Program(t, "ansible-playbook")
	identity, existing := labtest.Keystone(t), labtest.Database(t)
	database, errDatabase := url.Parse(existing)
	broker, errBroker := url.Parse(labtest.RabbitMQ(t))
	if err := errors.Join(errDatabase, errBroker); err != nil {
		t.Fatal(err)
	}
	name := "ansible_" + strings.ToLower(rand.Text()[:8])
	port := built.UnusedPort(t)
	api := fmt.Sprintf("http://127.0.0.1:%d/v1", port)
	rabbitmqctl := filepath.Join(os.Getenv("ALMANAC_LAB"), "rabbitmqctl")
	p := newPlay(t, map[string]any{
		"almanac_api_port": port, "almanac_log_directory": "", "almanac_region": name,
		"almanac_keystone_url": identity.AuthURL, "almanac_keystone_user": name,
		"almanac_keystone_admin": map[string]string{
			"OS_AUTH_URL": identity.AuthURL, "OS_USERNAME": labtest.Admin.Name, "OS_PASSWORD": labtest.Admin.Password, "OS_PROJECT_NAME": labtest.Admin.Project,
			"OS_USER_DOMAIN_ID": "default", "OS_PROJECT_DOMAIN_ID": "default",
		},
		"almanac_public_url": api, "almanac_internal_url": api,
		"almanac_database_port": database.Port(), "almanac_database_name": name, "almanac_database_user": name,
		"almanac_database_client": []string{"mariadb", "--no-defaults"}, "almanac_database_admin": "almanac", "almanac_database_admin_password": "almanac",
		"almanac_rabbitmq_nodes": []string{broker.Host}, "almanac_rabbitmq_vhost": name, "almanac_rabbitmq_user": name, "almanac_rabbitmqctl": []string{rabbitmqctl},
		"almanac_options": map[string]any{"inventory": map[string]any{"source": "file", "hosts_file": filepath.Join(built.NewFolder(t, built.TenHosts), "hosts.yaml")}},
	})
	t.Cleanup(func() {
		labtest.Execute(t, existing, "DROP DATABASE IF EXISTS "+name, "DROP USER IF EXISTS "+name)
		for _, words := range [][]string{{"delete_vhost", name}, {"delete_user", name}} {
			if out, err := exec.Command(rabbitmqctl, words...).CombinedOutput(); err != nil {
				t.Errorf("rabbitmqctl %s: %v\n%s", words, err, out)
			}
		}
	})
	p.run("config")
	p.run("bootstrap")
	p.run("register")
	admin := identity.REST(t, labtest.Admin)
	var found struct {
		Users     []struct{ ID string }
		Endpoints []struct{ ID, Interface, URL string }
	}
	admin.Must(http.MethodGet, "identity", "/users?name="+name, nil, &found)
	admin.Must(http.MethodGet, "identity", "/endpoints?region_id="+name, nil, &found)
	t.Cleanup(func() {
		for _, e := range found.Endpoints {
			admin.Must(http.MethodDelete, "identity", "/endpoints/"+e.ID, nil, nil)
		}
		for _, u := range found.Users {
			admin.Must(http.MethodDelete, "identity", "/users/"+u.ID, nil, nil)
		}
		admin.Must(http.MethodDelete, "identity", "/regions/"+name, nil, nil)
	})
	if len(found.Users) != 1 || len(found.Endpoints) != 3 || found.Endpoints[0].URL != api {
		t.Fatalf("registered are %+v", found)
	}
	s := p.start()
	p.run("check")
	demo := append(identity.Environment(labtest.Demo), "OS_REGION_NAME="+name)
	if out, messages, exit := built.Almanac(t, p.folder, demo, "reservation", "create", "first", "--duration", "1h", "--wait"); exit != 0 {
		t.Errorf("a tenant finds Almanac in the catalog and reserves: exit status %d\n%s%s\n%s", exit, out, messages, s.Log.Troubles())
	}
	for _, action := range []string{"bootstrap", "register"} {
		if again := p.run(action); !strings.Contains(again, "changed=0") {
			t.Errorf("a second %s changes something:\n%s", action, again)
		}
	}
	s.Stop(t)
}
