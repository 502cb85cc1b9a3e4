// SPDX-License-Identifier: Apache-2.0

package blazartest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// InCatalog is an almanacd that the clients of Blazar find in the catalog. Its hosts are in the pool
// once they are enrolled, as Blazar's are.
type InCatalog struct {
	*built.Guarded
	Region             string
	Admin, Demo, Demo2 Client
}

// StartInCatalog starts almanacd and registers it in a region of the catalog, which it leaves when the test ends.
func StartInCatalog(t *testing.T, region string) *InCatalog {
	t.Helper()
	b := &InCatalog{Guarded: built.StartGuarded(t, "OS_BLAZAR__POOL=enrolled"), Region: region}
	b.Admin, b.Demo, b.Demo2 = b.Client(labtest.Admin), b.Client(labtest.Demo), b.Client(labtest.Demo2)
	t.Cleanup(func() { b.LeaveCatalog(region) })
	admin := append(b.Keystone.Environment(labtest.Admin), b.Settings...)
	if out, failed := built.Almanacd(t, b.Folder, admin, "bootstrap", "keystone", "--public-url", b.URL+"/v1", "--region", region); failed {
		t.Fatalf("bootstrap: %s", out)
	}
	return b
}

// LeaveCatalog removes the endpoints of a region from the catalog.
func (b *InCatalog) LeaveCatalog(region string) {
	b.T.Helper()
	ids := strings.Fields(b.Administer("endpoint", "list", "--service", "almanac", "--region", region, "-f", "value", "-c", "ID"))
	b.Administer(append([]string{"endpoint", "delete"}, ids...)...)
	if region != b.Keystone.Region {
		b.Administer("region", "delete", region)
	}
}

// Administer runs the openstack client as the admin; the command must succeed.
func (b *InCatalog) Administer(command ...string) (output string) {
	b.T.Helper()
	said := b.Admin.Clients.Run(append([]string{"OS_REGION_NAME=" + b.Keystone.Region, "openstack"}, command...)...)
	if said.Exit != 0 {
		b.T.Errorf("%q: exit code %d\n%s", command, said.Exit, said.Err)
	}
	return said.Out
}

// Client returns Blazar's command line of a user, in the region.
func (b *InCatalog) Client(u labtest.User) Client {
	b.T.Helper()
	// the command blazar assumes no way to log in
	return Client{b.T, b.Keystone.Clients(b.T, u, "OS_REGION_NAME="+b.Region, "OS_AUTH_TYPE=password")}
}

// Client is Blazar's command line of a user.
type Client struct {
	T       *testing.T
	Clients *labtest.Clients
}

// Run runs `openstack reservation`; words are split at spaces, each of arguments is one argument.
func (c Client) Run(words string, arguments ...string) labtest.Said {
	c.T.Helper()
	return c.Clients.Run(slices.Concat([]string{"openstack", "reservation"}, strings.Fields(words), arguments)...)
}

// Does runs a command that must succeed, and returns its output.
func (c Client) Does(words string, arguments ...string) string {
	c.T.Helper()
	said := c.Run(words, arguments...)
	if said.Exit != 0 {
		c.T.Fatalf("%s %q: exit code %d\n%s%s", words, arguments, said.Exit, said.Out, said.Err)
	}
	return said.Out
}

// Fails runs a command that must fail, with a message.
func (c Client) Fails(message, words string, arguments ...string) {
	c.T.Helper()
	said := c.Run(words, arguments...)
	if said.Exit != 1 || !strings.Contains(said.Err, message) {
		c.T.Errorf("%s %q: exit code %d, want 1 and %q:\n%s%s", words, arguments, said.Exit, message, said.Out, said.Err)
	}
}

// Table is what a command prints with -f json for one object.
type Table map[string]any

// Shows runs a command that must print an object.
func (c Client) Shows(words string, arguments ...string) (shown Table) {
	c.T.Helper()
	c.decode(&shown, words, arguments...)
	return shown
}

// Lists runs a command that must print a list.
func (c Client) Lists(words string, arguments ...string) (list []Table) {
	c.T.Helper()
	c.decode(&list, words, arguments...)
	return list
}

func (c Client) decode(value any, words string, arguments ...string) {
	c.T.Helper()
	out := c.Does(words, append(arguments, "-f", "json")...)
	if sentence, rest, _ := strings.Cut(out, "\n"); strings.HasPrefix(sentence, "Created a new ") {
		out = rest
	}
	if err := json.Unmarshal([]byte(out), value); err != nil {
		c.T.Fatalf("%s %q: %v\n%s", words, arguments, err, out)
	}
}

// Has fails the test unless the object has the values.
func (c Client) Has(shown, want Table) {
	c.T.Helper()
	for name, value := range want {
		if shown[name] != value {
			c.T.Errorf("%s is %#v, want %#v:\n%v", name, shown[name], value, shown)
		}
	}
}

// Reservations returns the reservations of a lease. The client prints them as JSON objects in one
// text.
func (c Client) Reservations(lease Table) (all []Table) {
	c.T.Helper()
	for text := json.NewDecoder(strings.NewReader(lease["reservations"].(string))); text.More(); {
		var one Table
		if err := text.Decode(&one); err != nil {
			c.T.Fatalf("the reservations of a lease: %v\n%s", err, lease["reservations"])
		}
		all = append(all, one)
	}
	return all
}

// Column returns a column of a list.
func Column(list []Table, name string) (all []string) {
	for _, row := range list {
		all = append(all, row[name].(string))
	}
	return all
}
