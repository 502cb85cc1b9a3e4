// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// inCatalog is an almanacd that the clients of Blazar find in the catalog. Its hosts are in the pool
// once they are enrolled, as Blazar's are.
type inCatalog struct {
	*guarded
	region             string
	admin, demo, demo2 blazarClient
}

func startInCatalog(t *testing.T, region string) *inCatalog {
	t.Helper()
	b := &inCatalog{guarded: startGuarded(t, "OS_BLAZAR__POOL=enrolled"), region: region}
	b.admin, b.demo, b.demo2 = b.client(labtest.Admin), b.client(labtest.Demo), b.client(labtest.Demo2)
	t.Cleanup(func() { b.leaveCatalog(region) })
	admin := append(b.keystone.Environment(labtest.Admin), b.settings...)
	if out, failed := almanacd(t, b.folder, admin, "bootstrap", "keystone", "--public-url", b.url+"/v1", "--region", region); failed {
		t.Fatalf("bootstrap: %s", out)
	}
	return b
}

// leaveCatalog removes the endpoints of a region from the catalog.
func (b *inCatalog) leaveCatalog(region string) {
	b.t.Helper()
	ids := strings.Fields(b.administer("endpoint", "list", "--service", "almanac", "--region", region, "-f", "value", "-c", "ID"))
	b.administer(append([]string{"endpoint", "delete"}, ids...)...)
	if region != b.keystone.Region {
		b.administer("region", "delete", region)
	}
}

// administer runs the openstack client as the admin; the command must succeed.
func (b *inCatalog) administer(command ...string) (output string) {
	b.t.Helper()
	said := b.admin.clients.Run(append([]string{"OS_REGION_NAME=" + b.keystone.Region, "openstack"}, command...)...)
	if said.Exit != 0 {
		b.t.Errorf("%q: exit code %d\n%s", command, said.Exit, said.Err)
	}
	return said.Out
}

func (b *inCatalog) client(u labtest.User) blazarClient {
	b.t.Helper()
	// the command blazar assumes no way to log in
	return blazarClient{b.t, b.keystone.Clients(b.t, u, "OS_REGION_NAME="+b.region, "OS_AUTH_TYPE=password")}
}

// blazarClient is Blazar's command line of a user.
type blazarClient struct {
	t       *testing.T
	clients *labtest.Clients
}

// run runs `openstack reservation`; words are split at spaces, each of arguments is one argument.
func (c blazarClient) run(words string, arguments ...string) labtest.Said {
	c.t.Helper()
	return c.clients.Run(slices.Concat([]string{"openstack", "reservation"}, strings.Fields(words), arguments)...)
}

// does runs a command that must succeed, and returns its output.
func (c blazarClient) does(words string, arguments ...string) string {
	c.t.Helper()
	said := c.run(words, arguments...)
	if said.Exit != 0 {
		c.t.Fatalf("%s %q: exit code %d\n%s%s", words, arguments, said.Exit, said.Out, said.Err)
	}
	return said.Out
}

// fails runs a command that must fail, with a message.
func (c blazarClient) fails(message, words string, arguments ...string) {
	c.t.Helper()
	said := c.run(words, arguments...)
	if said.Exit != 1 || !strings.Contains(said.Err, message) {
		c.t.Errorf("%s %q: exit code %d, want 1 and %q:\n%s%s", words, arguments, said.Exit, message, said.Out, said.Err)
	}
}

// table is what a command prints with -f json for one object.
type table map[string]any

// shows runs a command that must print an object.
func (c blazarClient) shows(words string, arguments ...string) (shown table) {
	c.t.Helper()
	c.decode(&shown, words, arguments...)
	return shown
}

// lists runs a command that must print a list.
func (c blazarClient) lists(words string, arguments ...string) (list []table) {
	c.t.Helper()
	c.decode(&list, words, arguments...)
	return list
}

func (c blazarClient) decode(value any, words string, arguments ...string) {
	c.t.Helper()
	out := c.does(words, append(arguments, "-f", "json")...)
	if sentence, rest, _ := strings.Cut(out, "\n"); strings.HasPrefix(sentence, "Created a new ") {
		out = rest
	}
	if err := json.Unmarshal([]byte(out), value); err != nil {
		c.t.Fatalf("%s %q: %v\n%s", words, arguments, err, out)
	}
}

// has fails the test unless the object has the values.
func (c blazarClient) has(shown, want table) {
	c.t.Helper()
	for name, value := range want {
		if shown[name] != value {
			c.t.Errorf("%s is %#v, want %#v:\n%v", name, shown[name], value, shown)
		}
	}
}

// reservations returns the reservations of a lease. The client prints them as JSON objects in one
// text.
func (c blazarClient) reservations(lease table) (all []table) {
	c.t.Helper()
	for text := json.NewDecoder(strings.NewReader(lease["reservations"].(string))); text.More(); {
		var one table
		if err := text.Decode(&one); err != nil {
			c.t.Fatalf("the reservations of a lease: %v\n%s", err, lease["reservations"])
		}
		all = append(all, one)
	}
	return all
}

// column returns a column of a list.
func column(list []table, name string) (all []string) {
	for _, row := range list {
		all = append(all, row[name].(string))
	}
	return all
}
