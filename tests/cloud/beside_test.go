// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// beside is an almanacd beside the lab's OpenStack, which no other test uses at the same time.
type beside struct {
	*built.Service
	t        *testing.T
	cloud    labtest.LabCloud
	settings []string
	self     labtest.User // almanacd's user on the cloud
	heard    *chaos.Told  // its notifications
	crashed  bool

	admin, demo, demo2 *tenant
}

// tenant is a user of the cloud and of Almanac.
type tenant struct {
	*labtest.REST
	user    labtest.User
	almanac *client.Client
}

// tidied removes once what killed tests have left. Other tests remove their own resources.
var tidied sync.Once

// besideOpenStack starts almanacd beside the lab's OpenStack. bootstrap creates its user, with a
// unique password. When the test ends, everything that it left on the cloud is removed.
func besideOpenStack(t *testing.T, settings ...string) *beside {
	t.Helper()
	b := &beside{t: t, cloud: labtest.OpenStack(t), self: labtest.User{
		Name: "almanac-" + strings.ToLower(rand.Text()), Password: "unmistakable-" + rand.Text(), Project: "service",
	}}
	broker := labtest.RabbitMQ(t)
	b.settings = append([]string{
		"OS_DEFAULT__DEBUG=true", // so that the log has everything that it can have
		"OS_DEFAULT__TRANSPORT_URL=" + broker,
		"OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2", "OS_OSLO_MESSAGING_RABBIT__RABBIT_QUORUM_QUEUE=true",
		"OS_DATABASE__CONNECTION=" + labtest.Database(t),
		"OS_API__AUTH_STRATEGY=keystone",
		"OS_KEYSTONE_AUTHTOKEN__AUTH_URL=" + b.cloud.AuthURL, "OS_KEYSTONE_AUTHTOKEN__USERNAME=" + b.self.Name,
		"OS_KEYSTONE_AUTHTOKEN__PASSWORD=" + b.self.Password, "OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME=" + b.self.Project,
		"OS_INVENTORY__SOURCE=openstack", "OS_INVENTORY__REFRESH_INTERVAL=1",
		"OS_NOVA__NOTIFICATIONS=true", "OS_NOVA__TRANSPORT_URL=" + labtest.NovaTransport(t),
		"OS_RESERVATION__END_GRACE=0", "OS_RESERVATION__BEFORE_END=0", "OS_HEALING__GRACE=0",
		"OS_RESERVATION__ON_END_CHOICES=delete,stop,shelve,leave",
		// A cloud on a slow machine is slow to answer.
		"OS_KEYSTONE_AUTHTOKEN__HTTP_REQUEST_TIMEOUT=1m", "OS_NOVA__TIMEOUT=5m", "OS_PLACEMENT__TIMEOUT=5m", "OS_GLANCE__TIMEOUT=5m",
		"OS_PREEMPTIBLE__EVICTION_TIMEOUT=10m",
	}, settings...)
	b.heard = chaos.Listen(t, broker)
	b.sync()
	tidied.Do(b.leave)
	b.bootstrap("keystone", "--public-url", "http://127.0.0.1:1234/v1")
	t.Cleanup(b.leave)
	b.start()
	b.admin, b.demo, b.demo2 = b.tenant(labtest.Admin), b.tenant(labtest.Demo), b.tenant(labtest.Demo2)
	return b
}

func (b *beside) sync() {
	b.t.Helper()
	if out, failed := built.Almanacd(b.t, built.NewFolder(b.t, built.TenHosts), b.settings, "db", "sync"); failed {
		b.t.Fatalf("db sync: %s", out)
	}
}

// start starts almanacd, also after kill or stop. In every test, its log must not contain
// credentials.
func (b *beside) start() {
	b.t.Helper()
	s := built.Start(b.t, built.NewFolder(b.t, built.TenHosts), b.settings...)
	b.t.Cleanup(func() {
		if b.Service == s && !b.crashed {
			s.Stop(b.t)
		}
		for _, secret := range []string{b.self.Password, "gAAAA"} {
			if at := strings.Index(s.Log.String(), secret); at >= 0 {
				b.t.Errorf("the log has a password or a token: …%s", s.Log.String()[max(0, at-200):at])
			}
		}
	})
	b.Service, b.crashed = s, false
	for _, who := range []*tenant{b.admin, b.demo, b.demo2} {
		if who != nil {
			who.almanac = b.calls(who.user)
		}
	}
}

// crash ends almanacd as a power failure would.
func (b *beside) crash() {
	b.Kill()
	b.crashed = true
}

func (b *beside) tenant(u labtest.User) *tenant {
	b.t.Helper()
	return &tenant{REST: b.cloud.REST(b.t, u), user: u, almanac: b.calls(u)}
}

// calls returns a client of Almanac for the user.
func (b *beside) calls(u labtest.User) *client.Client {
	b.t.Helper()
	token := b.cloud.Token(b.t, u)
	c, err := client.New(client.Options{URL: b.URL, Token: func(context.Context) (string, error) { return token, nil }})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// bootstrap runs `almanacd bootstrap` as the admin of the cloud.
func (b *beside) bootstrap(arguments ...string) (said string) {
	b.t.Helper()
	environment := append(slices.Clone(b.settings), b.cloud.Environment(labtest.Admin)...)
	environment = append(environment, "OS_NOVA__ENDPOINT_OVERRIDE=", "OS_PLACEMENT__ENDPOINT_OVERRIDE=")
	c := built.Command(context.WithoutCancel(b.t.Context()), built.NewFolder(b.t, built.TenHosts), environment...)
	c.Args = append(append(c.Args, "bootstrap"), arguments...)
	out, err := c.CombinedOutput()
	if err != nil {
		b.t.Fatalf("bootstrap %v: %v\n%s", arguments, err, out)
	}
	return string(out)
}

// leave restores the cloud: without the test's servers, flavors and settings of hosts, and
// without Almanac.
func (b *beside) leave() {
	admin := b.cloud.REST(b.t, labtest.Admin)
	var servers struct{ Servers []struct{ ID string } }
	admin.Must("GET", "compute", "/servers?all_tenants=1", nil, &servers)
	for _, s := range servers.Servers {
		admin.Do("DELETE", "compute", "/servers/"+s.ID, nil, nil) // its deletion may be under way
	}
	b.await("the servers of the test are gone", func() bool {
		admin.Must("GET", "compute", "/servers?all_tenants=1", nil, &servers)
		return len(servers.Servers) == 0
	})
	var services struct{ Services []struct{ ID, Status string } }
	admin.Must("GET", "compute", "/os-services?binary=nova-compute", nil, &services)
	for _, s := range services.Services {
		if s.Status != "enabled" {
			admin.Must("PUT", "compute", "/os-services/"+s.ID, map[string]string{"status": "enabled"}, nil)
		}
	}
	b.bootstrap("--remove", "--force")
}
