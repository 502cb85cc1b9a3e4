// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
)

//go:embed clients.py
var clientsProgram string

// Clients are Debian's command lines of OpenStack, openstack and blazar. Their commands share what
// they import: each costs a fraction of what it costs in a shell.
type Clients struct {
	t         testing.TB
	commands  *json.Encoder
	answers   *json.Decoder
	complaint *bytes.Buffer
}

// Clients returns the command lines for the user. Variables are added to its environment. They end
// with the test.
func (i Identity) Clients(t testing.TB, u User, variables ...string) *Clients {
	t.Helper()
	c := &Clients{t: t, complaint: &bytes.Buffer{}}
	program := exec.CommandContext(context.WithoutCancel(t.Context()), pythonOfDebian, "-c", clientsProgram)
	program.Env = append(append(ownEnvironment(), i.Environment(u)...), variables...)
	program.Stderr = c.complaint
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := program.Wait(); err != nil {
			t.Errorf("the clients of OpenStack: %v\n%s", err, c.complaint)
		}
	})
	c.commands, c.answers = json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))
	return c
}

// Said is what a command left.
type Said struct {
	Exit     int
	Out, Err string
}

// Run runs a command, such as openstack reservation lease list. As in a shell, NAME=VALUE before it
// sets a variable.
func (c *Clients) Run(command ...string) (said Said) {
	c.t.Helper()
	if err := c.commands.Encode(command); err != nil {
		c.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, c.complaint)
	}
	if err := c.answers.Decode(&said); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		c.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, c.complaint)
	}
	return said
}
