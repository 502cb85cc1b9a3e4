// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// hardening returns the section of the guide that lists ports and secrets.
func hardening(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## Hardening\n")
	section, _, _ := strings.Cut(after, "\n## ")
	if !found {
		t.Fatal("the guide to operations has no section on hardening")
	}
	return section
}

func TestTheGuideListsEachSecretAndNoOther(t *testing.T) {
	_, after, _ := strings.Cut(hardening(t), "\n### Secrets\n")
	text, _, _ := strings.Cut(after, "\n### ")
	listed := map[string]bool{}
	for line := range strings.Lines(text) {
		if cell, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | "); row {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				listed[m[1]] = true
			}
		}
	}
	var cfg Config
	for _, s := range table(&cfg) {
		for _, o := range s.options {
			name := "[" + s.name + "] " + o.name
			if o.secret != listed[name] {
				t.Errorf("%s is secret: %t, and listed: %t", name, o.secret, listed[name])
			}
			delete(listed, name)
		}
	}
	for name := range listed {
		t.Errorf("the guide lists %s, which does not exist", name)
	}
}

// Each option with the address of a service is a connection that a firewall must let through.
func TestTheGuideListsEachConnection(t *testing.T) {
	text, found := hardening(t), 0
	var cfg Config
	for _, s := range table(&cfg) {
		for _, o := range s.options {
			switch {
			case o.name == "endpoint_override":
				if service := strings.ToUpper(s.name[:1]) + s.name[1:]; !strings.Contains(text, service) {
					t.Errorf("the guide lacks %s", service)
				}
			case o.name == "auth_url", o.name == "connection", o.name == "endpoint", strings.HasSuffix(o.name, "_url"), strings.HasSuffix(o.name, "_base_endpoint"):
				if !strings.Contains(text, "`["+s.name+"] "+o.name+"`") {
					t.Errorf("the guide lacks [%s] %s", s.name, o.name)
				}
			default:
				continue
			}
			found++
		}
	}
	if found < 12 {
		t.Errorf("%d options have an address", found)
	}
}

func TestTheGuideHasThePortOfTheAPI(t *testing.T) {
	var cfg Config
	restore(table(&cfg))
	if want := "| 127.0.0.1, 1234 |"; !strings.Contains(hardening(t), want) || cfg.API.Host != "127.0.0.1" || cfg.API.Port != 1234 {
		t.Errorf("the API listens on %s, %d by default; the guide should have it as %q", cfg.API.Host, cfg.API.Port, want)
	}
}
