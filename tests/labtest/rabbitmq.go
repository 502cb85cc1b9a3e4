// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// RabbitMQ creates a virtual host on the shared broker and returns its transport_url. The end of
// the test deletes it, with its queues and connections.
func RabbitMQ(t testing.TB) string {
	t.Helper()
	number := port(t, "rabbitmq")
	name := unique("almanac-test-")
	if err := virtualHost(http.MethodPut, number, name); err != nil {
		t.Fatalf("make a virtual host: %v", err)
	}
	t.Cleanup(func() {
		// RabbitMQ 3.10 may close the connection while it deletes quorum queues
		if err := await(patience, func() error { return virtualHost(http.MethodDelete, number, name) }); err != nil {
			t.Errorf("delete the test's virtual host: %v", err)
		}
	})
	return transportURL(number, name)
}

func transportURL(port int, host string) string {
	return fmt.Sprintf("rabbit://almanac:almanac@127.0.0.1:%d/%s", port, host)
}

// virtualHost creates or deletes a virtual host. Its creator has all rights on it.
func virtualHost(method string, port int, name string) error {
	_, err := manage(method, port, "vhosts/"+name)
	return err
}

// Rabbitmqctl runs a command on the shared broker, and returns its output.
func Rabbitmqctl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder(t), "rabbitmqctl"), args...).Output()
	if err != nil {
		t.Fatalf("rabbitmqctl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// BrokerLog returns what the shared broker has logged: warnings and errors.
func BrokerLog(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(t), "log", "rabbitmq.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// manage calls the management API, which listens on the port after AMQP's.
func manage(method string, port int, path string) ([]byte, error) {
	request, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d/api/%s", port+1, path), nil)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth("almanac", "almanac")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	said, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	gone := method == http.MethodDelete && reply.StatusCode == http.StatusNotFound
	if reply.StatusCode >= http.StatusBadRequest && !gone {
		return nil, fmt.Errorf("%s: %s", reply.Status, said)
	}
	return said, nil
}

// Broker is a RabbitMQ of the test's own.
type Broker struct {
	t      testing.TB
	launch func() (*process, error)
	files  string // its folder
	port   int

	mu      sync.Mutex
	release string // whose RabbitMQ it is; "" is that of the lab
	process *process
}

// StartRabbitMQ starts a private broker on free ports, with an epmd of its own. The end of the test
// stops both and removes the data.
func StartRabbitMQ(t testing.TB) *Broker {
	t.Helper()
	return startRabbitMQ(t, "", func(int) string { return "" })
}

// StartStrictRabbitMQ is StartRabbitMQ with a broker that refuses queues which are transient and not
// exclusive, as RabbitMQ 4 does by an option. It skips the test in a lab with an earlier RabbitMQ,
// which has no such option.
func StartStrictRabbitMQ(t testing.TB) *Broker {
	t.Helper()
	if version := strings.TrimSpace(Rabbitmqctl(t, "version")); strings.HasPrefix(version, "3.") {
		t.Skipf("RabbitMQ %s cannot refuse queues; make test-releases runs this", version)
	}
	return startRabbitMQ(t, "", func(int) string { return "deprecated_features.permit.transient_nonexcl_queues = false\n" })
}

// StartTLSRabbitMQ is StartRabbitMQ with a broker that also speaks TLS, with the certificate and key in
// PEM files: see TLSURL.
func StartTLSRabbitMQ(t testing.TB, certificate, key string) *Broker {
	t.Helper()
	return startRabbitMQ(t, "", func(port int) string {
		return fmt.Sprintf("listeners.ssl.1 = 127.0.0.1:%d\nssl_options.certfile = %s\nssl_options.keyfile = %s\nssl_options.verify = verify_none\n",
			port+4, certificate, key)
	})
}

// TLSURL creates a virtual host and returns its transport_url over TLS, to which options can be
// added after &.
func (r *Broker) TLSURL(authority string) string {
	r.t.Helper()
	name := unique("almanac-test-")
	if err := virtualHost(http.MethodPut, r.port, name); err != nil {
		r.t.Fatalf("make a virtual host: %v", err)
	}
	return transportURL(r.port+4, name) + "?ssl=true&ssl_ca_file=" + authority
}

// StartRabbitMQOf is StartRabbitMQ with the RabbitMQ of a release such as "epoxy". It skips the test
// unless ALMANAC_TEST_ROOTS is tests/openstack/lab, which keeps a root of each release.
func StartRabbitMQOf(t testing.TB, release string) *Broker {
	t.Helper()
	if os.Getenv("ALMANAC_TEST_ROOTS") == "" {
		t.Skip("make test-upgrade runs it, with the brokers of other releases")
	}
	return startRabbitMQ(t, release, func(int) string { return "" })
}

// Upgrade stops the broker and starts the RabbitMQ of a release in its place, with the same data.
func (r *Broker) Upgrade(release string) {
	r.t.Helper()
	r.Stop()
	r.mu.Lock()
	r.release = release
	r.mu.Unlock()
	r.Start()
}

// startRabbitMQ starts a broker of a release, or of the lab's if that is "". Its settings are the shared one's
// and more, which may depend on the first of its five ports.
func startRabbitMQ(t testing.TB, release string, more func(port int) string) *Broker {
	t.Helper()
	lab := folder(t)
	files := private(t, lab, "rabbitmq")
	r := &Broker{t: t, files: files, port: freePorts(t, 5), release: release}
	settings, err := os.ReadFile(filepath.Join(lab, "rabbitmq.conf"))
	if err != nil {
		t.Fatal(err)
	}
	settings = append(settings, more(r.port)...)
	if err := os.WriteFile(filepath.Join(files, "rabbitmq.conf"), settings, 0o644); err != nil {
		t.Fatal(err)
	}
	startEpmd(t, files, r.port+3)
	r.launch = func() (*process, error) {
		command := []string{filepath.Join(lab, "rabbitmq-node"), files, fmt.Sprint(r.port), "rabbitmq-server"}
		if r.release != "" {
			command = append([]string{"env", "LAB=" + files, "RELEASE=" + r.release, os.Getenv("ALMANAC_TEST_ROOTS"), "within"}, command...)
		}
		return launch(nil, filepath.Join(files, "broker.log"), command[0], command[1:]...)
	}
	t.Cleanup(r.Kill)
	r.Start()
	return r
}

// startEpmd starts the name server that a broker registers with.
func startEpmd(t testing.TB, files string, port int) {
	t.Helper()
	epmd, err := launch(nil, filepath.Join(files, "epmd.log"), "epmd", "-port", fmt.Sprint(port), "-address", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(epmd.kill)
	if err := epmd.answers(patience, func() error { return dial(port) }); err != nil {
		t.Fatal(err)
	}
}

// dial returns an error unless a server listens on the port.
func dial(port int) error {
	connection, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return err
	}
	return connection.Close()
}

// URL returns the transport_url of the broker's virtual host /.
func (r *Broker) URL() string { return transportURL(r.port, "") }

// Start starts a broker that was killed or stopped, on its old port, and returns when it accepts
// connections.
func (r *Broker) Start() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		r.t.Fatal("this RabbitMQ runs already")
	}
	started, err := r.launch()
	if err != nil {
		r.t.Fatal(err)
	}
	r.process = started
	if err := started.answers(patience, func() error { return dial(r.port) }); err != nil {
		r.t.Fatal(err)
	}
}

// AwaitQuorumQueues waits until all quorum queues are in the list that RabbitMQ keeps on disk, which
// RabbitMQ 3.10 writes late. A queue that is not in it when the broker is killed is stuck when the
// broker comes back, and so are its confirmed messages.
func (r *Broker) AwaitQuorumQueues() {
	r.t.Helper()
	if err := await(patience, r.quorumQueuesAreWritten); err != nil {
		r.t.Fatal(err)
	}
}

func (r *Broker) quorumQueuesAreWritten() error {
	text, err := manage(http.MethodGet, r.port, "queues?columns=name,type")
	if err != nil {
		return err
	}
	var queues []struct{ Name, Type string }
	if err := json.Unmarshal(text, &queues); err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(r.files, "mnesia", "rabbit@localhost", "quorum", "rabbit@localhost", "names.dets"))
	if err != nil {
		return err
	}
	for _, q := range queues {
		// In the list, an Erlang atom of virtual host and name precedes a binary (tag m).
		if q.Type == "quorum" && !bytes.Contains(list, []byte("%2F_"+q.Name+"m")) {
			return fmt.Errorf("RabbitMQ has not written quorum queue %s to disk", q.Name)
		}
	}
	return nil
}

// Kill is kill -9. A broker that does not run stays as it is.
func (r *Broker) Kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return
	}
	r.process.kill()
	r.process = nil
}

// Stop shuts the broker down cleanly.
func (r *Broker) Stop() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return
	}
	if err := r.process.stop(patience); err != nil {
		r.t.Error(err)
	}
	r.process = nil
}
