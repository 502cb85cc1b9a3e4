// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Galera is a cluster of the test's own. Its nodes are numbered from 0. Replication is Galera's:
// synchronous up to certification. So a statement of a transaction may fail with 1213, a read may
// be stale, a node without a majority answers 1047, and the sudden loss of a node stalls commits
// for about six seconds.
type Galera struct {
	t       testing.TB
	files   string
	lab     string
	account *syscall.Credential
	ports   []int // of each node: SQL, then group, IST and SST

	mu    sync.Mutex
	nodes []*process // nil: does not run
}

// StartGalera starts a cluster and returns when all its nodes are synced. The end of the test stops
// it and removes its data. These tests take long, so they are skipped unless ALMANAC_TEST_GALERA is
// set.
func StartGalera(t testing.TB, nodes int) *Galera {
	t.Helper()
	lab := folder(t)
	if os.Getenv("ALMANAC_TEST_GALERA") == "" {
		t.Skip("make test-galera runs it")
	}
	g := &Galera{t: t, lab: lab, files: private(t, lab, "galera"), account: mysqlAccount(t), nodes: make([]*process, nodes)}
	for node := range nodes {
		g.ports = append(g.ports, freePorts(t, 4))
		if err := os.Mkdir(g.folder(node), 0o711); err != nil {
			t.Fatal(err)
		}
		if g.account == nil {
			continue
		}
		if err := os.Chown(g.folder(node), int(g.account.Uid), int(g.account.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	copyTemplate(t, lab, g.folder(0)) // the others get theirs from a member
	for node := range nodes {
		t.Cleanup(func() { g.Kill(node) })
	}
	for node := range nodes {
		g.Start(node)
		g.Wait(node + 1)
	}
	return g
}

func (g *Galera) folder(node int) string { return filepath.Join(g.files, fmt.Sprintf("node%d", node)) }
func (g *Galera) data(node int) string   { return filepath.Join(g.folder(node), "data") }
func (g *Galera) log(node int) string    { return filepath.Join(g.folder(node), "mariadbd.log") }

// arguments returns a node's command line.
func (g *Galera) arguments(node int) []string {
	members := make([]string, len(g.ports))
	for i, first := range g.ports {
		members[i] = fmt.Sprintf("127.0.0.1:%d", first+1)
	}
	first := g.ports[node]
	return []string{
		"--defaults-file=" + filepath.Join(g.lab, "mariadb.cnf"),
		"--datadir=" + g.data(node), "--tmpdir=" + g.folder(node), "--socket=" + filepath.Join(g.folder(node), "sock"),
		"--pid-file=" + filepath.Join(g.folder(node), "pid"), fmt.Sprintf("--port=%d", first),
		"--innodb-buffer-pool-size=64M", "--innodb-autoinc-lock-mode=2", "--binlog-format=ROW",
		"--wsrep-on=ON", "--wsrep-provider=/usr/lib/galera/libgalera_smm.so", "--wsrep-cluster-name=almanac",
		fmt.Sprintf("--wsrep-node-name=node%d", node), "--wsrep-node-address=" + members[node],
		fmt.Sprintf("--wsrep-node-incoming-address=127.0.0.1:%d", first),
		"--wsrep-cluster-address=gcomm://" + strings.Join(members, ","),
		fmt.Sprintf("--wsrep-provider-options=base_port=%d; gmcast.listen_addr=tcp://%s; ist.recv_addr=127.0.0.1:%d; gcache.size=64M",
			first+1, members[node], first+2),
		// This plugin, which MariaDB 11.8 loads, refuses changes of the options with which tests isolate a node.
		"--loose-plugin-wsrep-provider=OFF",
		"--wsrep-sst-method=rsync", fmt.Sprintf("--wsrep-sst-receive-address=127.0.0.1:%d", first+3),
		"--wsrep-slave-threads=2", "--wsrep-retry-autocommit=0",
	}
}

// Start starts a node that does not run. While others run it joins them; Wait returns when it is
// synced. The first node of a cluster that is down as a whole must be the one that committed last.
func (g *Galera) Start(node int) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.nodes[node] != nil {
		g.t.Fatalf("node %d runs already", node)
	}
	arguments := g.arguments(node)
	if !g.anyRuns() {
		if err := g.allowBootstrap(node); err != nil {
			g.t.Fatal(err)
		}
		arguments = append(arguments, "--wsrep-new-cluster")
	}
	if err := os.MkdirAll(g.data(node), 0o700); err != nil {
		g.t.Fatal(err)
	}
	if g.account != nil {
		if err := os.Chown(g.data(node), int(g.account.Uid), int(g.account.Gid)); err != nil {
			g.t.Fatal(err)
		}
	}
	started, err := launch(g.account, g.log(node), "mariadbd", arguments...)
	if err != nil {
		g.t.Fatal(err)
	}
	g.nodes[node] = started
}

func (g *Galera) anyRuns() bool {
	for _, process := range g.nodes {
		if process != nil {
			return true
		}
	}
	return false
}

// allowBootstrap lets a node be the first of a cluster that is down, provided that no other has
// committed more.
func (g *Galera) allowBootstrap(node int) error {
	state := filepath.Join(g.data(node), "grastate.dat")
	text, err := os.ReadFile(state)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a new cluster
	}
	if err != nil {
		return err
	}
	own, err := g.position(node)
	if err != nil {
		return err
	}
	for other := range g.nodes {
		theirs, err := g.position(other)
		if err != nil {
			return err
		}
		if theirs > own {
			return fmt.Errorf("start node %d before node %d: it has committed more", other, node)
		}
	}
	text = []byte(strings.Replace(string(text), "safe_to_bootstrap: 0", "safe_to_bootstrap: 1", 1))
	return os.WriteFile(state, text, 0o600)
}

var recovered = regexp.MustCompile(`Recovered position: \S+:(-?\d+)`)

// position returns the number of the last write set that a stopped node has.
func (g *Galera) position(node int) (int64, error) {
	log := filepath.Join(g.folder(node), "recover.log")
	if err := os.RemoveAll(log); err != nil {
		return 0, err
	}
	recovering, err := launch(g.account, log, "mariadbd", append(g.arguments(node), "--wsrep-recover")...)
	if err != nil {
		return 0, err
	}
	select {
	case <-recovering.ended:
	case <-time.After(patience):
		recovering.kill()
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, err
	}
	found := recovered.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("node %d does not tell its position\n%s", node, tail(log))
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// Wait returns when exactly that many nodes are synced members of the primary component.
func (g *Galera) Wait(synced int) {
	g.t.Helper()
	err := await(patience, func() error {
		count := 0
		for node := range g.nodes {
			if g.synced(node, synced) {
				count++
			}
		}
		if count != synced {
			return fmt.Errorf("%d nodes of %d are synced", count, synced)
		}
		return nil
	})
	if err == nil {
		return
	}
	for node := range g.nodes {
		g.t.Logf("node %d:\n%s", node, tail(g.log(node)))
	}
	g.t.Fatalf("Galera cluster: %v", err)
}

// synced reports whether the node is in a primary component of that size.
func (g *Galera) synced(node, size int) bool {
	server, err := sql.Open("mysql", dsn(g.ports[node], ""))
	if err != nil {
		return false
	}
	defer server.Close()
	for name, want := range map[string]string{
		"wsrep_local_state_comment": "Synced",
		"wsrep_cluster_status":      "Primary",
		"wsrep_cluster_size":        strconv.Itoa(size),
	} {
		var got string
		if err := server.QueryRow("SHOW STATUS LIKE '"+name+"'").Scan(&name, &got); err != nil || got != want {
			return false
		}
	}
	return true
}

// Kill is kill -9. A node that does not run stays as it is.
func (g *Galera) Kill(node int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.nodes[node] != nil {
		g.nodes[node].kill()
		g.nodes[node] = nil
	}
}

// Stop shuts a node down cleanly; it leaves the cluster first.
func (g *Galera) Stop(node int) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.nodes[node] == nil {
		return
	}
	if err := g.nodes[node].stop(patience); err != nil {
		g.t.Error(err)
	}
	g.nodes[node] = nil
}

// URL returns the SQLAlchemy URL of a database at a node. A node that runs creates the database if
// it is missing.
func (g *Galera) URL(node int, database string) string {
	g.t.Helper()
	g.create(node, database)
	return databaseURL(g.ports[node], database)
}

// DSN returns the same in the form of go-sql-driver.
func (g *Galera) DSN(node int, database string) string {
	g.t.Helper()
	g.create(node, database)
	return dsn(g.ports[node], database)
}

func (g *Galera) create(node int, database string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.nodes[node] == nil {
		return
	}
	server, err := sql.Open("mysql", dsn(g.ports[node], ""))
	if err != nil {
		g.t.Fatal(err)
	}
	defer server.Close()
	if _, err := server.Exec("CREATE DATABASE IF NOT EXISTS `" + database + "`"); err != nil {
		g.t.Fatalf("make a database on node %d: %v", node, err)
	}
}
