// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
)

func TestAWrongStartSaysWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		hosts, config string
		policy        string // of rules.yaml
		settings      []string
		want          []string // in one message
	}{
		"unknown option, with file, line and the nearest name": {
			config: "[DEFAULT]\ndebug = true\n[database]\nconection = sqlite:///x.db\n",
			want:   []string{"almanac.conf:4", "conection", "connection"},
		},
		"unknown section": {
			config: "[databse]\n", want: []string{"almanac.conf:1", "databse", "database"},
		},
		"a value out of range": {
			config: "[api]\nmax_body_bytes = 1\n", want: []string{"almanac.conf:2", "max_body_bytes", "1024"},
		},
		"unknown key in the hosts file, with line and the nearest name": {
			hosts: "hosts:\n  - name: a\n    vcpus: 8\n    memory: 1024\n",
			want:  []string{"hosts.yaml:4", "memory", "memory_mb"},
		},
		"a hosts file that is not there": {
			settings: []string{"OS_INVENTORY__HOSTS_FILE=nowhere.yaml"},
			want:     []string{"nowhere.yaml", "no such file"},
		},
		"a hosts file without hosts": {
			hosts: "hosts: []\n", want: []string{"no hosts"},
		},
		"an address that others can reach": {
			settings: []string{"OS_API__HOST=0.0.0.0"}, want: []string{"loopback", "noauth"},
		},
		"a database of another kind, without its password": {
			settings: []string{"OS_DATABASE__CONNECTION=oracle://u:secret@db/almanac"}, want: []string{"connection", "oracle", "mysql"},
		},
		"a database server that does not answer, without its password": {
			settings: []string{"OS_DATABASE__CONNECTION=mysql+pymysql://u:secret@127.0.0.1:1/almanac", "OS_DATABASE__MAX_RETRIES=1", "OS_DATABASE__RETRY_INTERVAL=1"},
			want:     []string{"u@127.0.0.1:1/almanac", "does not answer", "retrying"},
		},
		"an unknown role, with the line and the known roles": {
			config: "[DEFAULT]\nroles = api, inventry\n", want: []string{"almanac.conf:2", "roles", "inventry", "inventory"},
		},
		"roles apart without a message broker": {
			config: "[DEFAULT]\nroles = api\n", want: []string{"transport_url"},
		},
		"a message broker whose address is wrong, without its password": {
			settings: []string{"OS_DEFAULT__TRANSPORT_URL=kafka://u:secret@mq"}, want: []string{"transport_url", "kafka", "rabbit"},
		},
		"Keystone without its address": {
			config: "[api]\nauth_strategy = keystone\n", want: []string{"[keystone_authtoken] auth_url"},
		},
		"a policy with an unknown rule": {
			settings: []string{"OS_OSLO_POLICY__POLICY_FILE=rules.yaml"}, policy: "reservations:creat: \"role:reader\"\n",
			want: []string{"reservations:creat", "reservations:create"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.hosts == "" {
				tc.hosts = built.TenHosts
			}
			folder := built.NewFolder(t, tc.hosts)
			ctx, cancel := context.WithTimeout(t.Context(), built.Patience)
			defer cancel()
			c := built.Command(ctx, folder, tc.settings...)
			if tc.config != "" {
				if err := os.WriteFile(filepath.Join(folder, "almanac.conf"), []byte(tc.config), 0o600); err != nil {
					t.Fatal(err)
				}
				c.Args = append(c.Args, "--config-file", "almanac.conf")
			}
			if err := os.WriteFile(filepath.Join(folder, "rules.yaml"), []byte(tc.policy), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := c.CombinedOutput()
			if err == nil || ctx.Err() != nil {
				t.Fatalf("almanacd started:\n%s", out)
			}
			for _, want := range tc.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("the message does not contain %q:\n%s", want, out)
				}
			}
			if strings.Contains(string(out), "secret") || strings.Contains(string(out), "goroutine") {
				t.Errorf("the message contains too much:\n%s", out)
			}
		})
	}
}

func TestTwoServicesDoNotShareADatabase(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	first := built.Start(t, folder)
	ctx, cancel := context.WithTimeout(t.Context(), built.Patience)
	defer cancel()
	out, err := built.Command(ctx, folder).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another almanacd uses the database") {
		t.Fatalf("a second almanacd on one database: %v\n%s", err, out)
	}
	first.Kill()
	built.Start(t, folder).Stop(t)
}
