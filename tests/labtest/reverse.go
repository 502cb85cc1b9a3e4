// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ReverseProxy starts nginx or apache2 in the foreground, as one process, and returns its address
// "host:port" once it accepts connections. In configuration, PORT stands for that port, CLOSED for one
// at which nobody listens, and HERE for a folder with the files and their contents.
func ReverseProxy(t testing.TB, program, configuration string, files map[string]string) string {
	t.Helper()
	here, ports := private(t, folder(t), program), freePorts(t, 2)
	text := strings.NewReplacer("HERE", here, "PORT", fmt.Sprint(ports), "CLOSED", fmt.Sprint(ports+1)).Replace(configuration)
	path := filepath.Join(here, "main.conf")
	write := func(name, content string) {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, text)
	for name, content := range files {
		write(filepath.Join(here, name), content)
	}
	words := map[string][]string{
		"nginx":   {"-p", here, "-e", "stderr", "-c", path, "-g", "daemon off; master_process off;"},
		"apache2": {"-X", "-d", here, "-f", path},
	}[program]
	p, err := launch(nil, filepath.Join(here, "log"), program, words...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the log of %s ends with\n%s", program, tail(p.log))
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", ports)
	err = p.answers(patience, func() error {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return address
}
