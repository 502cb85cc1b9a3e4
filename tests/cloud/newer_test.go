// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// The requests are those of the real nova-conductor. On their way, each object gets a version two
// minors later and a field that nobody knows.
//
// ALMANAC_CAPTURE=FOLDER writes the requests, as they come, into files such as those in
// pkg/nova/object/testdata.
func TestRequestsOfANewerNovaAreServed(t *testing.T) {
	cloud := labtest.OpenStack(t)
	s := &siege{T: t, cloud: cloud, admin: cloud.REST(t, labtest.Admin)}
	t.Cleanup(s.clean)
	_, options, _ := strings.Cut(labtest.NovaTransport(t), "?")
	behind := labtest.RabbitMQ(t) + "?" + options
	built.StartOn(t, built.TenHosts, append(built.BesideNova(t, cloud, built.Replace, ""), "OS_NOVA__TRANSPORT_URL="+behind)...)
	r := newRenewer(t, behind)
	built.TakeTopic(t)

	s.boot()
	s.bootWith(map[string]any{"availability_zone": "nova"})
	s.bootWith(map[string]any{"availability_zone": "nova:" + cloud.Hosts(t)[2]})
	for _, id := range s.servers {
		s.eventually("server "+id+" that is ACTIVE", func() bool { return s.status(id) == "ACTIVE" })
	}
	moved := s.servers[0]
	s.admin.Must(http.MethodPost, "compute", "/servers/"+moved+"/action", map[string]any{"migrate": nil}, nil)
	s.eventually("a server that is migrated", func() bool { return s.status(moved) == "VERIFY_RESIZE" })
	s.remove()

	objects := r.objects()
	t.Logf("%d requests with the objects %v", r.requests(), objects)
	if r.requests() < 4 || !slices.ContainsFunc(objects, func(o string) bool { return strings.HasPrefix(o, "RequestSpec 1.") }) {
		t.Error("the requests did not come this way")
	}
}

// renewer serves Nova's topic and passes the requests on to almanacd, renewed.
type renewer struct {
	client  *oslo.Client
	release release.Release

	mu    sync.Mutex
	calls int
	seen  map[string]bool // names of objects with their new versions
}

// newRenewer serves the topic until the test ends. almanacd serves it behind another transport_url.
func newRenewer(t *testing.T, behind string) *renewer {
	t.Helper()
	nova, queues := openTransport(t, labtest.NovaTransport(t))
	private, _ := openTransport(t, behind)
	r := &renewer{seen: map[string]bool{}, release: labtest.Release(t), client: oslo.NewClient(private, oslo.ClientOptions{
		Queues: queues, Timeout: cloudPatience, NewID: oslotest.NewID, Now: time.Now,
	})}
	t.Cleanup(r.client.Close)
	server := oslo.NewServer(nova, oslo.ServerOptions{
		Exchange: "nova", Topic: "scheduler", Name: "renewer", Queues: queues, NewID: oslotest.NewID,
		Endpoints: []oslo.Endpoint{{Version: "4.99", Methods: map[string]oslo.Handler{"select_destinations": r.pass}}},
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	<-server.Ready()
	return r
}

func openTransport(t *testing.T, url string) (*amqp.Transport, oslo.QueueOptions) {
	t.Helper()
	u, err := oslo.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	queues, err := u.Queues(oslo.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(u, amqp.Options{Name: t.Name(), NewID: oslotest.NewID, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := transport.Close(); err != nil {
			t.Error(err)
		}
	})
	return transport, queues
}

// pass answers a request with almanacd's answer to the renewed one.
func (r *renewer) pass(ctx context.Context, q *oslo.Request) (any, error) {
	var args map[string]any
	if err := q.Decode(&args); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.calls++
	err := r.capture(q, args)
	if err == nil {
		err = r.renew(args)
	}
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var answer json.RawMessage
	target := oslo.Target{Exchange: "nova", Topic: "scheduler", Version: q.Version}
	err = r.client.Call(oslo.WithContext(ctx, q.Context), target, q.Method, args, &answer)
	return answer, err
}

// capture keeps a request if the caller of the test wants it. mu is held.
func (r *renewer) capture(q *oslo.Request, args map[string]any) error {
	folder := os.Getenv("ALMANAC_CAPTURE")
	if folder == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"method": q.Method, "version": q.Version, "args": args}, "", " ")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%d-request.json", q.Method, r.release.Name(), r.calls)
	return os.WriteFile(filepath.Join(folder, name), append(text, '\n'), 0o644)
}

// renew changes the objects inside of a value. mu is held.
func (r *renewer) renew(value any) error {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			if err := r.renew(one); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, one := range value {
			if err := r.renew(one); err != nil {
				return err
			}
		}
		version, is := value["nova_object.version"].(string)
		data, has := value["nova_object.data"].(map[string]any)
		if !is || !has {
			return nil
		}
		major, minor, _ := strings.Cut(version, ".")
		n, err := strconv.Atoi(minor)
		if err != nil {
			return fmt.Errorf("the version %q of %v: %w", version, value["nova_object.name"], err)
		}
		version = fmt.Sprintf("%s.%d", major, n+2)
		value["nova_object.version"], data["foreseen_by_nobody"] = version, map[string]any{"since": version}
		changes, _ := value["nova_object.changes"].([]any)
		value["nova_object.changes"] = append(changes, "foreseen_by_nobody")
		r.seen[fmt.Sprintf("%v %s", value["nova_object.name"], version)] = true
	}
	return nil
}

func (r *renewer) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// objects returns the names of the objects, with their new versions.
func (r *renewer) objects() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.seen))
}
