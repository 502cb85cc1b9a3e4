// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/command"
	"github.com/almanac-cloud/almanac/tests/powertest"
)

// The programs of this site keep the machine, the orders and its troubles in files of a folder.
const driverTool = `#!/bin/sh
cd "$2" || exit 1
[ -e hang ] && exec sleep 600
[ "$1" = status ] && exec cat machine
echo "$1" >>orders
case $1 in
off) [ -e ignore ] || echo off 9 >machine ;;
cut) echo off 9 >machine ;;
*) echo "$1" 200 >machine ;;
esac
`

func TestTheDriverDoesWhatEachDoes(t *testing.T) {
	powertest.Run(t, "command", func(t *testing.T) powertest.Bench {
		folder := t.TempDir()
		file := func(name string) string { return filepath.Join(folder, name) }
		put := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(file(name), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		read := func(name string) string {
			text, _ := os.ReadFile(file(name)) // there are no orders at first
			return string(text)
		}
		put("tool", driverTool)
		put("machine", "on 200\n")
		argv := func(word string) []string { return []string{file("tool"), word, folder} }
		m, err := command.New(command.Options{
			Host: "h", On: argv("on"), Off: argv("off"), Cut: argv("cut"), Standby: argv("standby"), Status: argv("status"),
			Poll: power.PollInterval{Read: 5 * time.Millisecond, Resend: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		return powertest.Bench{
			Machine: m, On: func() bool { return strings.HasPrefix(read("machine"), "on") },
			Orders: func() int { return strings.Count(read("orders"), "\n") },
			Ignore: func() { put("ignore", "") }, Hang: func() { put("hang", "") },
		}
	})
}
