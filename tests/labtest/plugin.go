// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// SchedulerWith makes another nova-scheduler of Debian's serve Nova's topic until the end of the
// test. It has the Python package in a folder of sources, which pip installs as an operator does,
// and further options of Nova ("almanac.fail_open=true"). SchedulerWith returns when it serves.
func SchedulerWith(t testing.TB, sources string, options ...string) {
	t.Helper()
	occupy(t)
	modules := InstallPython(t, sources)
	main := NovaTransport(t)
	address, _, _ := strings.Cut(main, "?")
	t.Cleanup(func() { removeBehind(t) })
	removeBehind(t) // remains of a test that was killed
	labWith(t, []string{
		"NOVA_MODULES=" + modules, "NOVA_OPTIONS=" + strings.Join(append([]string{"DEFAULT.transport_url=" + address}, options...), " "),
	}, "start", "nova-scheduler-behind")
	NewConductor(t, main).await(behindScheduler)
	TakeSchedulerAway(t)
}

// SchedulerLog returns what the nova-scheduler of SchedulerWith has logged in this lab.
func SchedulerLog(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(t), "log", "nova-scheduler-behind.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// InstallPython installs a package from its sources with Debian's pip, without a network, and
// returns the folder of its modules.
func InstallPython(t testing.TB, sources string) (modules string) {
	t.Helper()
	// setuptools leaves files beside the sources.
	copied := filepath.Join(t.TempDir(), "sources")
	if err := os.CopyFS(copied, os.DirFS(sources)); err != nil {
		t.Fatal(err)
	}
	modules = filepath.Join(private(t, folder(t), "modules"), "installed")
	Python(t, copied, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps", "--target", modules, ".")
	return modules
}
