// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// OpenstackAll runs commands in one openstack client as the user, each with -f json, and decodes
// their outputs into the values, one for each command. One client for all costs little more than a
// client for a single command. Its status does not count: that of openstackclient 7 after commands
// on its standard input is always 1.
func (i Identity) OpenstackAll(t testing.TB, u User, commands []string, values ...any) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "openstack")
	command.Env = append(ownEnvironment(), i.Environment(u)...)
	var script strings.Builder
	for _, line := range commands {
		fmt.Fprintf(&script, "%s -f json\n", line)
	}
	var complaint bytes.Buffer
	command.Stdin, command.Stderr = strings.NewReader(script.String()), &complaint
	out, status := command.Output()
	if len(values) != len(commands) {
		t.Fatalf("%d commands for %d values", len(commands), len(values))
	}
	printed := json.NewDecoder(bytes.NewReader(out))
	for n, value := range values {
		if err := printed.Decode(value); err != nil {
			t.Fatalf("openstack %s as %s: %v (%v)\n%s%s", commands[n], u.Name, err, status, out, complaint.String())
		}
	}
}
