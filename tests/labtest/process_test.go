// SPDX-License-Identifier: Apache-2.0

package labtest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

const dying = "LABTEST_DYING" // set in the test process that will be killed

func TestPrivateServersDieWithTheTestProcess(t *testing.T) {
	if os.Getenv(dying) != "" {
		server := labtest.StartMariaDB(t)
		dsn := server.DSN("almanac")
		fmt.Println("server", dsn, one[string](t, open(t, dsn), "SELECT @@datadir"))
		<-t.Context().Done()
		return
	}
	labtest.Database(t) // skips without a lab
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	process.Env = append(os.Environ(), dying+"=yes")
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer process.Wait()
	defer process.Process.Kill()
	var dsn, data string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "server "); found {
			dsn, data, _ = strings.Cut(rest, " ")
			break
		}
	}
	if data == "" {
		t.Fatal("the other test process has started no server")
	}
	defer os.RemoveAll(filepath.Dir(filepath.Clean(data)))
	server := open(t, dsn)
	if err := server.Ping(); err != nil {
		t.Fatal(err)
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	tick, deadline := time.NewTicker(20*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for err := error(nil); err == nil; err = server.Ping() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the server outlives the test process")
		}
	}
}
