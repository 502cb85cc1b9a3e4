// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// The hosts of nova-scheduler's services in the lab.
const (
	mainScheduler   = "controller"
	behindScheduler = "behind"
)

// NovaTransport returns the transport_url of Nova's services, whose query has the options of their
// queues.
func NovaTransport(t testing.TB) string {
	t.Helper()
	return transportURL(port(t, "rabbitmq"), "") + "?" + queueOptions(t)
}

// queueOptions returns the queue options of all of Nova, including defaults, and those among
// further options of one of its services.
func queueOptions(t testing.TB, further ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(t), "nova", "options.conf"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	options := url.Values{"amqp_durable_queues": {"false"}, "rabbit_quorum_queue": {"false"}}
	section := ""
	for line := range strings.Lines(string(text)) {
		name, value, option := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case !option:
			section = name
		case section == "[oslo_messaging_rabbit]":
			options.Set(name, value)
		}
	}
	for _, one := range further {
		if option, is := strings.CutPrefix(one, "oslo_messaging_rabbit."); is {
			name, value, _ := strings.Cut(option, "=")
			options.Set(name, value)
		}
	}
	return options.Encode()
}

// SchedulerBehind starts a second nova-scheduler of the lab's cloud on a virtual host of its own,
// with further options of Nova ("scheduler.max_placement_results=4"), and returns its transport_url
// once it serves. The end of the test removes both, with the messages that wait there.
func SchedulerBehind(t testing.TB, options ...string) (address string) {
	t.Helper()
	occupy(t)
	t.Cleanup(func() { removeBehind(t) })
	removeBehind(t) // remains of a test that was killed
	labWith(t, []string{"NOVA_OPTIONS=" + strings.Join(options, " ")}, "start", "nova-scheduler-behind")
	address = transportURL(port(t, "rabbitmq"), "behind") + "?" + queueOptions(t, options...)
	NewConductor(t, address).await(behindScheduler)
	return address
}

func removeBehind(t testing.TB) {
	t.Helper()
	lab(t, "kill", "nova-scheduler-behind")
	if err := virtualHost(http.MethodDelete, port(t, "rabbitmq"), "behind"); err != nil {
		t.Errorf("delete the virtual host of nova-scheduler-behind: %v", err)
	}
}

// TakeSchedulerAway stops nova-scheduler, so that another server may serve its topic. Requests wait
// in the queue until one does. The end of the test starts it again, and returns when it serves.
func TakeSchedulerAway(t testing.TB) {
	t.Helper()
	occupy(t)
	t.Cleanup(func() { bringBackScheduler(t) })
	lab(t, "away", "nova-scheduler")
}

// bringBackScheduler starts nova-scheduler if a test has stopped it.
func bringBackScheduler(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder(t), "run", "nova-scheduler.away")); err != nil {
		return
	}
	lab(t, "start", "nova-scheduler")
	NewConductor(t, NovaTransport(t)).await(mainScheduler)
}

// NovaAPIDatabase returns the SQLAlchemy URL of Nova's API database.
func NovaAPIDatabase(t testing.TB) string {
	t.Helper()
	return databaseURL(port(t, "mariadb"), "nova_api")
}

// Queue is a queue as RabbitMQ shows it. The two numbers are up to five seconds old.
type Queue struct {
	Name       string
	Type       string // classic, quorum or stream
	Durable    bool
	AutoDelete bool `json:"auto_delete"`
	Arguments  map[string]any
	Consumers  int
	Messages   int
}

// Queues returns the queues of the virtual host of a transport_url.
func Queues(t testing.TB, transportURL string) (list []Queue) {
	t.Helper()
	u, err := oslo.ParseURL(transportURL)
	if err != nil || len(u.Hosts) == 0 {
		t.Fatalf("queues of %v: %v", u, err)
	}
	text, err := manage(http.MethodGet, u.Hosts[0].Port, "queues/"+url.PathEscape(u.VirtualHost))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatalf("list the queues of %v: %v", u, err)
	}
	return list
}

// Stray returns the allocations in Placement whose consumer is neither a server of Nova nor a
// migration, as "CONSUMER on HOST".
func (c LabCloud) Stray(t testing.TB) (list []string) {
	t.Helper()
	admin := c.REST(t, Admin)
	known := knownConsumers(admin)
	var providers struct {
		All []struct{ UUID, Name string } `json:"resource_providers"`
	}
	admin.Must(http.MethodGet, "placement", "/resource_providers", nil, &providers)
	for _, p := range providers.All {
		var found struct{ Allocations map[string]any }
		admin.Must(http.MethodGet, "placement", "/resource_providers/"+p.UUID+"/allocations", nil, &found)
		for consumer := range found.Allocations {
			if !known[consumer] {
				list = append(list, consumer+" on "+p.Name)
			}
		}
	}
	return list
}

// knownConsumers returns the ids of Nova's servers and migrations.
func knownConsumers(admin *REST) map[string]bool {
	admin.t.Helper()
	known, marker := map[string]bool{}, ""
	for {
		var page struct{ Servers []struct{ ID string } }
		admin.Must(http.MethodGet, "compute", "/servers?all_tenants=1&limit="+strconv.Itoa(serversOfAPage)+marker, nil, &page)
		for _, server := range page.Servers {
			known[server.ID] = true
			marker = "&marker=" + server.ID
		}
		if len(page.Servers) < serversOfAPage {
			break
		}
	}
	var migrations struct{ Migrations []struct{ UUID string } }
	admin.Must(http.MethodGet, "compute", "/os-migrations", nil, &migrations)
	for _, migration := range migrations.Migrations {
		known[migration.UUID] = true
	}
	return known
}

// serversOfAPage is Nova's max_limit.
const serversOfAPage = 1000
