// SPDX-License-Identifier: Apache-2.0

package service

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// unrun is a command of a page that does not run in the test of its page.
type unrun struct {
	page, begins string
	why          string // the test that runs it, or what it needs
}

// elsewhereRun lists the commands that the tests of the pages leave out. The first row that fits a command counts.
var elsewhereRun = []unrun{
	{"README.md", "make run", "test TestTheREADMEWorksAsPrinted starts the same service"},
	{"README.md", "bin/almanac reservation create training --quantity 2 --duration 2h", "test TestTheREADMEWorksAsPrinted"},
	{"README.md", "bin/almanac reservation list -c", "test TestTheREADMEWorksAsPrinted"},
	{"README.md", "bin/almanac reservation create more", "test TestTheREADMEWorksAsPrinted"},
	{"README.md", "bin/almanac reservation extend", "test TestTheREADMEWorksAsPrinted"},
	{"README.md", "bin/almanac availability", "test TestTheREADMEWorksAsPrinted"},
	{"README.md", "curl -s http", "test TestTheREADMEWorksAsPrinted"},
	{"README.md", "bin/almanac reservation delete", "test TestTheREADMEWorksAsPrinted"},
	{"README.md", "make lab build", "needs a lab of its own, as root"},
	{"README.md", "export ALMANAC_LAB", "needs a lab of its own, as root"},
	{"README.md", "source $ALMANAC_LAB", "needs a lab of its own, as root"},
	{"README.md", "bin/almanacd --config-file $ALMANAC_LAB", "needs a lab of its own, as root"},
	{"README.md", "curl -sf --retry", "needs a lab of its own, as root"},
	{"README.md", "bin/almanac host set --reservable", "needs a lab of its own, as root"},
	{"README.md", "id=$(bin/almanac reservation create", "needs a lab of its own, as root"},
	{"README.md", "openstack server create", "needs a lab of its own, as root"},
	{"README.md", "bin/almanac reservation show $id", "needs a lab of its own, as root"},
	{"docs/lab.md", "", "needs a lab of its own, as root"},
	{"docs/demo.md", "bin/almanacd demo", "test TestTheTourOfTheDemoWorksAsPrinted starts it"},
	{"docs/demo.md", "", "test TestTheTourOfTheDemoWorksAsPrinted"},
	{"docs/blazar.md", "openstack reservation lease create web", "needs a Neutron: test TestFloatingIPsAreReservedInNeutron"},
	{"docs/blazar.md", "openstack reservation floatingip", "needs a Neutron: test TestFloatingIPsAreReservedInNeutron"},
	{"docs/blazar.md", "openstack floating ip", "needs a Neutron: test TestFloatingIPsAreReservedInNeutron"},
	{"docs/blazar.md", "openstack reservation", "test TestTheCommandsForBlazarsClientWork"},
	{"docs/tenants.md", "openstack server create", "needs a cloud with servers"},
	{"docs/nova.md", "openstack server create", "needs a cloud with servers"},
	{"docs/operations.md", "openstack server create", "needs a cloud with servers"},
	{"docs/preemption.md", "openstack flavor set", "needs a cloud with servers"},
	{"docs/preemption.md", "almanac decision show", "needs the id of a server: test TestNormalServersMakeRoomInACloudFullOfPreemptibleOnes"},
	{"docs/install.md", "# ", "needs root of a machine with systemd: test TestPackagesLeadToAReservationAndLeaveNothing"},
	{"docs/first-day.md", "systemctl", "needs root of a machine with systemd: test TestPackagesLeadToAReservationAndLeaveNothing"},
	{"docs/first-day.md", "almanacd bootstrap keystone", "needs a Keystone: test TestBootstrapPutsAlmanacIntoTheCatalogWhereTheCommandLineFindsIt"},
	{"docs/operations.md", "almanacd bootstrap keystone", "needs a Keystone: test TestBootstrapPutsAlmanacIntoTheCatalogWhereTheCommandLineFindsIt"},
	{"docs/operations.md", "almanacd bootstrap --remove", "needs a Keystone and a Nova of its own: test TestBootstrapPutsAlmanacIntoTheCatalogWhereTheCommandLineFindsIt"},
	{"docs/operations.md", "almanacd db trail RESERVATION", "needs the id of a reservation"},
	{"docs/operations.md", "# apt install", "needs root of a machine with systemd: test TestPackagesLeadToAReservationAndLeaveNothing"},
	{"docs/operations.md", "# rabbitmqctl", "needs root of a broker: tests/openstack/parts/rabbitmq runs the same"},
	{"docs/operations.md", "# systemctl", "needs root of a machine with systemd: test TestPackagesLeadToAReservationAndLeaveNothing"},
	{"docs/operations.md", "# systemd-ask-password", "needs root of a machine with systemd"},
	{"docs/operations.md", "# echo", "needs root of a balancer: test TestTheExamplesPleaseTheirPrograms reads its configuration"},
	{"docs/operations.md", "# almanacd db copy", "needs a server of MariaDB: test TestADatabaseMovesToMariaDBAndBackWithItsReservations"},
	{"docs/operations.md", "# mysql", "needs root of a database server"},
	{"docs/operations.md", "# almanacd db backup", "writes to a folder of the machine: test TestTheBackupAndTheRestoreOfTheGuideWorkAsPrinted"},
	{"docs/operations.md", "# almanacd db restore", "needs a service that is stopped: test TestTheBackupAndTheRestoreOfTheGuideWorkAsPrinted"},
	{"docs/operations.md", "# grep", "needs a log with that request"},
	{"docs/nova.md", "# rabbitmqctl", "needs root of a broker beside Nova"},
	{"docs/nova.md", "# nova-manage", "needs root of a cloud"},
	{"docs/nova.md", "# systemctl", "needs root of a cloud"},
	{"docs/nova.md", "almanacd nova mode", "needs a broker beside Nova: the cloud's tests run it in both modes"},
	{"docs/packing.md", "almanac pack apply", "needs a cloud with servers: test TestServersAreMovedAsPlannedAndStopInTheMiddleLeavesThemWhole"},
	{"docs/energy.md", "almanac-power check node-01", "needs an agent with machines: test TestCheckTellsHowAMachineIsAndWhatToDo"},
	{"docs/energy.md", "almanac-power test node-01", "needs an agent with machines: test TestAWakeTestIsLookedOnAt"},
	{"docs/energy.md", "almanac-power --config-file", "needs the configuration above and a broker: test TestAnAgentThatIsKilledGoesOnWithItsOrder"},
	{"docs/energy.md", "almanac host set 'cmp-", "needs hosts that an agent switches: test TestAnIdleHostSleepsUntilItsReservationBegins"},
	{"docs/energy.md", "almanac energy host test cmp-007", "needs hosts that an agent switches: test TestAnIdleHostSleepsUntilItsReservationBegins"},
	{"docs/energy-forecast.md", "almanac energy backtest --service", "needs weeks of measurements: test TestBacktestOfMeasurements"},
	{"docs/energy-forecast.md", "almanac energy backtest --trace", "needs a log of Grid'5000: test TestBacktestOfReservations"},
	{"docs/performance.md", "almanac reservation import", "needs a log of Grid'5000"},
	{"docs/simulation.md", "almanac simulate replay", "needs the reader's own log: test TestReplaysOfRealLogsRunThrough"},
	{"docs/tariff.md", "curl", "needs the feed of a publisher: test TestTheRecipesMakeATariffOfWhatFeedsPublish"},
	{"docs/takeover.md", "almanacd import blazar", "needs a database of Blazar: test TestTheLeasesOfBlazarsDatabaseGoOnInAlmanac"},
	{"docs/takeover.md", "openstack", "needs a cloud with Blazar: test TestARunningBlazarIsTakenOver"},
	{"docs/plugin.md", "# apt install", "needs root of a machine with systemd: test TestPackagesLeadToAReservationAndLeaveNothing"},
	{"docs/plugin.md", "# python3 -m pip", "needs root of a machine with nova-scheduler: test TestAStockSchedulerWithThePluginKeepsReservations"},
	{"docs/deployment.md", "cd packaging/ansible", "needs machines: test TestTheAnsibleRoleDeploysAlmanacBesideRealServices"},
	{"docs/deployment.md", "cp inventory.example", "needs machines: test TestTheAnsibleRoleDeploysAlmanacBesideRealServices"},
	{"docs/deployment.md", "ansible-playbook", "needs machines: test TestTheAnsibleRoleDeploysAlmanacBesideRealServices"},
	{"docs/deployment.md", "kolla-ansible", "needs a cloud of Kolla-Ansible: test TestTheAnsibleRoleListensWhereKollaAnsiblePromises"},
	{"docs/deployment.md", "make image", "needs root and buildah: test TestPackagesInAnImageServeFromAReadOnlyRootWithoutPrivileges"},
	{"docs/deployment.md", "podman", "needs root and buildah: test TestPackagesInAnImageServeFromAReadOnlyRootWithoutPrivileges"},
	{"docs/deployment.md", "kubectl", "needs a Kubernetes: packaging/helm has its tests"},
	{"docs/deployment.md", "helm install", "needs a Kubernetes: packaging/helm has its tests"},
	{"docs/reliability.md", "", "runs tests of this repository"},
	{"devstack/README.md", "make build", "runs tests of this repository"},
	{"devstack/README.md", "export DEVSTACK_DIR", "runs tests of this repository"},
	{"devstack/README.md", "tests/openstack/lab", "runs tests of this repository"},
	{"devstack/README.md", "", "needs DevStack: test TestDevStack"},
}

// reasonFor returns why a command of a page does not run in its test; "" if it does.
func reasonFor(path, command string) string {
	for _, u := range elsewhereRun {
		if u.page == path && strings.HasPrefix(command, u.begins) {
			return u.why
		}
	}
	return ""
}

// pagesWithCommands returns the pages of the repository that have commands.
func pagesWithCommands(t *testing.T) map[string][]shown {
	t.Helper()
	pages := make(map[string][]shown)
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "adr" {
			return fs.SkipDir
		}
		if name := strings.TrimPrefix(path, "../../"); strings.HasSuffix(name, ".md") {
			pages[name] = commandsOf(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "devstack/README.md"} {
		pages[name] = commandsOf(t, "../../"+name)
	}
	maps.DeleteFunc(pages, func(_ string, list []shown) bool { return len(list) == 0 })
	return pages
}

func TestEachCommandOfAGuideRunsOrHasAReason(t *testing.T) {
	pages := pagesWithCommands(t)
	for path, list := range pages {
		for _, c := range list {
			runs := guideStages[path] != nil && !strings.HasPrefix(c.command, "# ") // root's commands do not
			if !runs && reasonFor(path, c.command) == "" {
				t.Errorf("%s: no test runs %s", path, c.command)
			}
		}
	}
	tests := repository.Tests(t)
	for _, u := range elsewhereRun {
		for _, name := range repository.Matches(`\b(Test\w+)`, u.why) {
			if !tests[name] {
				t.Errorf("%s: there is no %s", u.page, name)
			}
		}
		if !slices.ContainsFunc(pages[u.page], func(c shown) bool { return strings.HasPrefix(c.command, u.begins) }) {
			t.Errorf("%s has no command that begins with %s", u.page, u.begins)
		}
	}
}
