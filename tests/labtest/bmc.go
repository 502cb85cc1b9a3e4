// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BMC is an IPMI 2.0 BMC of the test's own: ipmi_sim of OpenIPMI, on UDP, with a folder of files as
// its chassis.
type BMC struct {
	t      testing.TB
	folder string
	Port   int
}

// The account of a BMC, with the rights of an administrator.
const (
	BMCUser     = "admin"
	BMCPassword = "lab-secret"
)

// bmcChassis is the program that ipmi_sim runs to read or change the chassis: FOLDER get NAME...,
// or FOLDER set NAME VALUE.... It answers "get" with a line for each name.
const bmcChassis = `#!/bin/sh
cd "$1" || exit 1
verb=$2; shift 2
echo "$verb $*" >>asked
sleep "$(cat delay)"
put() { echo "$2" >"$1.new" && mv "$1.new" "$1"; }
power() {
  [ "$(cat broken)" = 1 ] && return
  put power "$1"
  if [ "$1" = 1 ]; then put reading "$(cat watts)"; else put reading 8; fi
}
if [ "$verb" = get ]; then
  for name in "$@"; do
    case $name in power) echo "power:$(cat power)";; *) echo "$name:0";; esac
  done
  exit
fi
while [ $# -gt 1 ]; do
  case $1 in
  power) power "$2" ;;
  shutdown) [ "$(cat stubborn)" = 1 ] || power 0 ;;
  esac
  shift 2
done
`

// StartBMC starts a BMC of a machine that is on and takes 180 W. Its sensor Watts follows changes
// within a second, in steps of 4 W.
func StartBMC(t testing.TB) *BMC {
	t.Helper()
	b := &BMC{t: t, folder: private(t, folder(t), "bmc"), Port: freePorts(t, 1)}
	for name, content := range map[string]string{
		"power": "1\n", "watts": "180\n", "reading": "180\n", "broken": "0\n", "stubborn": "0\n", "delay": "0\n", "password": BMCPassword + "\n",
	} {
		b.write(name, content)
	}
	chassis := filepath.Join(b.folder, "chassis")
	if err := os.WriteFile(chassis, []byte(bmcChassis), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write("lan.conf", fmt.Sprintf(`name "bmc"
set_working_mc 0x20
 startlan 1
  addr 127.0.0.1 %d
  priv_limit admin
  allowed_auths_callback md5
  allowed_auths_user md5
  allowed_auths_operator md5
  allowed_auths_admin md5
  guid 0123456789abcdef0123456789abcdef
 endlan
 chassis_control "%s %s"
 user 2 true "%s" "%s" admin 10 md5
`, b.Port, chassis, b.folder, BMCUser, BMCPassword))
	b.write("sim.emu", fmt.Sprintf(`mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
sel_enable 0x20 1000 0x0a
sensor_add 0x20 0 1 0x0b 0x01 poll 1000 file "%s/reading" div=4
sensor_set_event_support 0x20 0 1 enable scanning none 000000000000000 000000000000000 000000000000000 000000000000000
main_sdr_add 0x20 %s
mc_enable 0x20
`, b.folder, bmcSensor()))
	launched, err := launch(nil, filepath.Join(b.folder, "log"), "ipmi_sim", "-c", filepath.Join(b.folder, "lan.conf"),
		"-f", filepath.Join(b.folder, "sim.emu"), "-s", b.folder, "-n")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(launched.kill)
	if err := launched.answers(patience, func() error { return ipmiPing(b.Port) }); err != nil {
		t.Fatal(err)
	}
	return b
}

// bmcSensor returns the SDR of a sensor "Watts" whose reading is four times a byte.
func bmcSensor() string {
	record := []byte{
		0x00, 0x00, 0x51, 0x01, 0x30, 0x20, 0x00, 0x01, 0x15, 0x01, 0x01, 0x40, 0x0b, 0x01, 0, 0, 0, 0, 0, 0, 0, 0x06, 0, 0, 0x04,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc5,
	}
	var text strings.Builder
	for _, b := range append(record, "Watts"...) {
		fmt.Fprintf(&text, "0x%02x ", b)
	}
	return text.String()
}

// PasswordFile returns the path of a file with the password.
func (b *BMC) PasswordFile() string { return filepath.Join(b.folder, "password") }

// On reports whether the power is on.
func (b *BMC) On() bool { return b.read("power") == "1" }

// Set changes the state of the machine without an order: power and broken (0 or 1; a broken machine
// accepts orders and does nothing), stubborn (its operating system ignores shutdown requests),
// watts while it is on, delay in seconds of each answer about the chassis.
func (b *BMC) Set(name string, value int) {
	b.t.Helper()
	b.write(name, fmt.Sprintf("%d\n", value))
}

// Orders returns the changes that it was ordered to make, one a line.
func (b *BMC) Orders() []string {
	var orders []string
	for line := range strings.Lines(b.read("asked")) {
		if order, ok := strings.CutPrefix(strings.TrimSpace(line), "set "); ok {
			orders = append(orders, order)
		}
	}
	return orders
}

func (b *BMC) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.folder, name))
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// write replaces a file atomically.
func (b *BMC) write(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.folder, name)
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		b.t.Fatal(err)
	}
}

// ipmiPing requests a BMC's authentication capabilities, which needs no session, and waits for any
// answer (IPMI 2.0, section 22.13).
func ipmiPing(port int) error {
	connection, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer connection.Close()
	request := []byte{
		0x06, 0x00, 0xff, 0x07, // RMCP, class IPMI
		0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, // no session, 9 bytes follow
		0x20, 0x18, 0xc8, 0x81, 0x00, 0x38, 0x0e, 0x04, 0x35,
	}
	if _, err := connection.Write(request); err != nil {
		return err
	}
	if err := connection.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		return err
	}
	_, err = connection.Read(make([]byte, 100))
	return err
}
