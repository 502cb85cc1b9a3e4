// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The URL of a service may contain a password: config show hides it, as in those of the database and the broker.
func TestShowHidesThePasswordsInURLsOfServices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "almanac.conf")
	text := "[keystone_authtoken]\nauth_url = https://u:hunter2@keystone.example/v3\n" +
		"[enforcement]\nexternal_service_base_endpoint = https://u:hunter2@usage.example/v1/\n" +
		"external_service_on_end_endpoint = https://u:hunter2@usage.example/v1/on-end\n" +
		"external_service_check_create_endpoint = https://usage.example/v1/check?access_token=hunter2&x=1\n" +
		"[tracing]\nendpoint = https://u:hunter2@traces.example/v1/traces\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load([]string{path}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	if err := Show(&shown, cfg); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(shown.String()) {
		if strings.Contains(line, "hunter2") {
			t.Errorf("shown: %s", strings.TrimSpace(line))
		}
	}
	for _, kept := range []string{"auth_url = https://u:***@keystone.example/v3\n", "check?access_token=***&x=1\n"} {
		if !strings.Contains(shown.String(), kept) {
			t.Errorf("not shown: %s", kept)
		}
	}
}

// No option, also none that is added later, may show the password of a URL in its value.
func TestNoOptionShowsThePasswordOfAURL(t *testing.T) {
	var cfg Config
	took := 0
	sections := table(&cfg)
	restore(sections)
	for _, s := range sections {
		for _, o := range s.options {
			if o.set("https://u:hunter2@service.example/path") != nil {
				o.restore() // it takes no URL
				continue
			}
			took++
		}
	}
	var shown bytes.Buffer
	if err := Show(&shown, cfg); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(shown.String()) {
		if strings.Contains(line, "hunter2") {
			t.Errorf("shown: %s", strings.TrimSpace(line))
		}
	}
	if took < 50 {
		t.Errorf("%d options took the URL", took)
	}
}
