package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// reservationClient runs `openstack reservation`, Blazar's command line, against a service without
// Keystone, and returns its output, with the errors.
func reservationClient(t *testing.T, s *service, arguments ...string) (output string, ok bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "openstack", append([]string{"--os-auth-type", "none", "--os-endpoint", s.url + "/v1", "reservation"}, arguments...)...)
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "OS_") { // of a lab
			c.Env = append(c.Env, setting)
		}
	}
	out, err := c.CombinedOutput()
	return string(out), err == nil
}

func TestBlazarsCommandLineManagesHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("make check leaves out what needs Debian's packages")
	}
	if _, err := exec.LookPath("openstack"); err != nil {
		t.Fatalf("%v: run `make test`, or `make lab` once, which installs it", err)
	}
	s := startOn(t, tenHosts, "OS_BLAZAR__POOL=enrolled")
	end := time.Now().UTC().Add(48 * time.Hour).Format("2006-01-02 15:04")
	for _, step := range []struct {
		command []string
		ok      bool
		has     []string // parts of the output
		lacks   string
	}{
		{[]string{"host", "create", "host-02", "--extra", "gpu=a100", "--extra", "rack=4"}, true, []string{"a100"}, ""},
		{[]string{"host", "create", "host-99"}, false, []string{"ERROR: Host 'host-99' not found!"}, ""},
		{[]string{"host", "list", "-f", "csv"}, true, []string{`"2","host-02",16,65536,500`}, "host-01"},
		{[]string{"host", "set", "host-02", "--extra", "rack=b12"}, true, nil, ""},
		{[]string{"host", "show", "2", "-f", "value", "-c", "rack", "-c", "service_name"}, true, []string{"b12", "host-02"}, ""},
		{[]string{"host", "property", "list", "--detail"}, true, []string{"gpu", "['b12']"}, ""},
		{[]string{"host", "property", "set", "rack", "--private"}, true, nil, ""},
		{[]string{"host", "property", "list"}, true, []string{"gpu"}, "rack"},
		{[]string{"host", "property", "show", "gpu", "-f", "value", "-c", "property_values"}, true, []string{"['a100']"}, ""},
		{[]string{"lease", "create", "l", "--end-date", end, "--reservation", `resource_type=physical:host,min=1,max=1,hypervisor_properties=["==", "$gpu", "a100"]`}, true, nil, ""},
		{[]string{"host", "set", "host-02", "--extra", "gpu=h100"}, false, []string{"ERROR: Can't add extracapabilities ['gpu'] to Host 2"}, ""},
		{[]string{"host", "delete", "host-02"}, false, []string{"ERROR: Can't delete host host-02. The host is reserved."}, ""},
		{[]string{"lease", "delete", "l"}, true, nil, ""},
		{[]string{"host", "delete", "2"}, true, nil, ""},
		{[]string{"host", "list", "-f", "json"}, true, []string{"[]"}, ""},
	} {
		out, ok := reservationClient(t, s, step.command...)
		if ok != step.ok {
			t.Fatalf("%q succeeds: %v, want %v:\n%s", step.command, ok, step.ok, out)
		}
		for _, part := range step.has {
			if !strings.Contains(out, part) {
				t.Errorf("%q does not print %s:\n%s", step.command, part, out)
			}
		}
		if step.lacks != "" && strings.Contains(out, step.lacks) {
			t.Errorf("%q prints %s:\n%s", step.command, step.lacks, out)
		}
	}
	shown, ok := reservationClient(t, s, "host", "create", "host-03", "--extra", "nvme=True", "-f", "json")
	var host map[string]any
	_, body, _ := strings.Cut(shown, "\n") // after the client's sentence
	if err := json.Unmarshal([]byte(body), &host); !ok || err != nil || host["id"] != "3" || host["nvme"] != "True" || host["vcpus"] != 16.0 {
		t.Errorf("the new host is %s: %v", shown, err)
	}
}
