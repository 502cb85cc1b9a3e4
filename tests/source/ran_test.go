// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// feature is a row of the table of what ran beside each release in docs/releases.md.
type feature struct {
	name string
	of   []string // tests of tests/cloud and tests/blazar, with a subtest after "/" or without, and other packages
}

// features lists the rows of the table, with each test of the cloud and each package whose tests ask
// the services or the code of a release.
var features = []feature{
	{"the whole life of reservations", []string{
		"TestTwoProjectsReserveHostsOfARealCloud", "TestNovaAndPlacementLearnOfOneOfEightLeasesAtOnceForAHost", "TestReservationsSideBySide", "TestAStartAndAnEndOutliveAKill",
		"TestWhatIsDueWhileServicesAreStoppedIsMadeUpFor", "TestThingsDeletedBehindAlmanacsBackComeBack", "TestWrongAnswersMakeEventsLateAndNothingElse"}},
	{"both modes with hints, placement as under nova-scheduler", []string{"TestServersArePlacedAsNovaSchedulerPlacesThem"}},
	{"private hints through Nova's API, in both modes", []string{
		"TestServersArePlacedAsNovaSchedulerPlacesThem/interpose/reserved_hosts", "TestServersArePlacedAsNovaSchedulerPlacesThem/replace/reserved_hosts"}},
	{"operations as under nova-scheduler, moves by the hint", []string{
		"TestOperationsEndAsUnderNovaScheduler", "TestGuestsByTheHintAreMovedInsideTheirReservationAndAfterItAnywhere"}},
	{"builds that fail, conductors that are gone", []string{
		"TestHostsAreAvoidedWhileBuildsFailThere", "TestWhatNovaHasGivenUpWhileAlmanacdWasAwayClaimsNothing", "TestNothingStaysClaimedForAConductorThatIsGone"}},
	{"Nova's topic shared by replicas and with nova-scheduler", []string{
		"TestAlmanacSharesTheTopicWithANovaSchedulerOfAnyQueues", "TestTransientQuorumQueuesAreDeclaredAsNewerNovaDoes",
		"TestTwoReplicasAtTheTopicOutliveAKillAndRestarts"}},
	{"preemptible instances", []string{
		"TestNormalServersMakeRoomInACloudFullOfPreemptibleOnes", "TestVictimsAreShelvedOrMovedAsConfigured",
		"TestAVictimThatIsLockedDuringItsNoticeStaysAndIsToldSo", "TestANoticeDoesNotOutliveTheAlmanacdThatGaveIt"}},
	{"hosts that sleep, with Ironic", []string{
		"TestAnIdleHostSleepsUntilItsReservationBegins", "TestADayOfHostsThatSleep", "TestAReservationLeavesAHostThatDoesNotWake"}},
	{"healing, doctor, removal without a trace", []string{
		"TestAHostThatFailsIsReplacedAndOneThatSleepsIsNot", "TestAnAddedHostWithAServerOfAnotherProjectIsReplaced",
		"TestTheDoctorFindsWhatAdminsHaveDoneByHandAndMendsIt", "TestNoTraceIsLeft"}},
	{"packing", []string{
		"TestServersAreMovedAsPlannedAndStopInTheMiddleLeavesThemWhole", "TestAHostIsEmptiedAndTheMembersOfAGroupStayApart",
		"TestAServerThatWouldSinkTheYieldUnderTheFloorIsRefused", "TestPreemptibleServersAreNotMovedOntoAHostThatIsReserved"}},
	{"best-effort work", []string{
		"TestBestEffortWorkMakesWayForAReservationAndGoesOnAfterIt", "TestBestEffortWorkIsSuspendedForAReservationThatStartsAtOnce",
		"TestBestEffortWorkIsPlacedWhereItIsPlanned"}},
	{"images", []string{"TestTheImageOfAReservationIsPutOnItsHosts", "reservation/staging/openstack", "pkg/glance"}},
	{"the plugin in nova-scheduler", []string{"TestThePluginIsRightByItself", "TestAStockSchedulerWithThePluginKeepsReservations"}},
	{"filters and weighers against the code of the release", []string{"TestTheReleaseHasThePartsThatItsCodeHas", "filters", "weighers"}},
	{"objects against the code of the release", []string{"pkg/nova/object"}},
	{"requests whose objects are two versions newer, with unknown fields", []string{"TestRequestsOfANewerNovaAreServed"}},
	{"Tempest, with the results of nova-scheduler", []string{"TestTempestSaysTheSameOfAlmanac"}},
	{"Blazar's command line and dashboard", []string{"TestBlazarsCommandLineUsesAlmanac", "TestBlazarsDashboardUsesAlmanac"}},
	{"gophercloud's own tests of reservations", []string{"TestGophercloudsOwnTestsPass"}},
	{"Blazar's queries against its code", []string{"pkg/blazar"}},
	{"the tests of Blazar's Tempest plugin, with the results of Blazar", []string{"TestTempestSaysOfAlmanacWhatItSaysOfBlazar"}},
	{"a running Blazar taken over", []string{"TestARunningBlazarIsTakenOver"}},
	{"a hostile member beside ten others", []string{"TestOneHostileMemberDoesNotSlowTheOthers"}},
	{"Keystone, Nova, Placement and Ironic as clients see them", []string{
		"TestBootstrapPutsAlmanacIntoTheCatalogWhereTheCommandLineFindsIt",
		"inventory/openstack", "inventory/remote", "pkg/energy/openstack", "pkg/ironic", "pkg/keystone", "pkg/nova", "pkg/nova/cells", "pkg/placement",
		"pkg/power", "pkg/power/ipmi", "pkg/power/ironic", "pkg/power/redfish", "reservation/notice", "reservation/upkeep/openstack"}},
	{"decisions, messages and the store", []string{"pkg/api", "pkg/app", "pkg/dispatch", "pkg/oslo/amqp", "pkg/sim/cloud", "pkg/store"}},
}

// aparted are the tests of the cloud, and packages of such tests, that run beside one release, and not
// in test-releases.
var aparted = []string{
	"TestOnALargeCloudFiftyReservationsOfTheSameSecondStartInTime", "TestPromisesSurviveHoursOfChurnBesideARealCloudAndNothingGrows",
	"TestOnALargeCloudTheStartsOfAKilledReplicaAreTakenOver", "TestNothingThatWaitsIsLostInQueuesThatOutliveTheBroker",
	"TestServersStayInTheirCellAndReservationsHaveHostsOfSeveral",
	"TestServersOfReservationsOfInstancesStartUnderUnifiedLimits",
	"pkg/neutron", "reservation/recurrence",
}

// unrelated are tests in the packages of the table that skip whatever the release is: one needs several
// releases, and make test-upgrade runs it; the other is the store that is in memory and lacks much.
var unrelated = []string{"TestCallsWorkAgainAfterTheBrokerIsUpgraded", "TestMemory"}

func TestEveryTestOfTheCloudBelongsToOneFeature(t *testing.T) {
	var have []string
	for _, f := range features {
		for _, name := range f.of {
			if !strings.HasPrefix(name, "Test") || !strings.Contains(name, "/") {
				have = append(have, name)
			}
		}
	}
	want := []string{"TestBlazarsCommandLineUsesAlmanac", "TestBlazarsDashboardUsesAlmanac"}
	for _, text := range textsOf(t, "../cloud/*_test.go") {
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(text, -1) {
			if found[1] != "TestASeriesMayGrowByItsBoundsAndNoMore" { // it uses no cloud
				want = append(want, found[1])
			}
		}
	}
	for _, p := range packages(t) {
		asks := func(text string) bool { return strings.Contains(text, "labtest.") }
		if !regexp.MustCompile("^(cmd|tests)(/|$)").MatchString(p.name()) && slices.ContainsFunc(textsOf(t, filepath.Join(p.Dir, "*_test.go")), asks) {
			want = append(want, p.name())
		}
	}
	if diff := gocmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(append(have, aparted...)))); diff != "" {
		t.Errorf("the table of features (-tests +table):\n%s", diff)
	}
}

// textsOf returns the files of a pattern.
func textsOf(t *testing.T, pattern string) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		texts = append(texts, repository.Read(t, file))
	}
	return texts
}

// subject is a test, or a whole package if the test is empty.
type subject struct{ pkg, test string }

// subjects returns what a feature consists of.
func (f feature) subjects() (all []subject) {
	for _, name := range f.of {
		if strings.HasPrefix(name, "Test") {
			all = append(all, subject{"tests", name}) // their names differ
		} else {
			all = append(all, subject{name, ""})
		}
	}
	return all
}

func (s subject) contains(other subject) bool {
	return s.pkg == other.pkg && (s.test == "" || s.test == other.test || strings.HasPrefix(other.test, s.test+"/"))
}

// outcome is the result of a test: "pass", "fail" or "skip".
type outcome struct {
	Action string
	Time   time.Time
}

// readRan returns the outcomes in the files that go test -json wrote in a folder. The last outcome
// of a test counts, but one that ran in one file is not skipped because another file skips it.
func readRan(t *testing.T, folder string) map[subject]outcome {
	t.Helper()
	all := map[subject]outcome{}
	for _, text := range textsOf(t, filepath.Join(folder, "*.json")) {
		for line := range strings.Lines(text) {
			var event struct {
				outcome
				Package, Test string
			}
			if json.Unmarshal([]byte(line), &event) != nil || !slices.Contains([]string{"pass", "fail", "skip"}, event.Action) {
				continue // what make prints, and what tests log
			}
			of := subject{strings.TrimPrefix(event.Package, module+"/"), event.Test}
			if of.pkg == "tests/cloud" || of.pkg == "tests/blazar" {
				of.pkg = "tests"
			}
			before := all[of]
			if before.Action == "" || before.Action == "skip" || event.Action != "skip" && event.Time.After(before.Time) {
				all[of] = event.outcome
			}
		}
	}
	return all
}

// cell returns what the table says of a feature: "green", "in part" if tests did not run and all
// others passed, what failed, or "" if nothing ran.
func (f feature) cell(outcomes map[subject]outcome) string {
	failed, passed, missed := map[string]bool{}, false, false
	for _, s := range f.subjects() {
		if outcomes[s].Action == "" {
			missed = true
		}
		for of, o := range outcomes {
			top, _, _ := strings.Cut(of.test, "/")
			switch {
			case !s.contains(of):
			case o.Action == "fail":
				failed["`"+cmp.Or(top, of.pkg)+"`"] = true
			case o.Action == "pass":
				passed = true
			default:
				missed = missed || !slices.Contains(unrelated, top)
			}
		}
	}
	switch {
	case len(failed) > 0:
		return "fails: " + strings.Join(slices.Sorted(maps.Keys(failed)), ", ")
	case passed && missed:
		return "in part"
	case passed:
		return "green"
	}
	return ""
}

// packaged are the rows of the table of versions that have the versions of Debian's packages.
var packaged = map[string]string{
	"Nova": "python3-nova", "Ironic": "python3-ironic", "RabbitMQ": "rabbitmq-server", "MariaDB": "mariadb-server", "oslo.messaging": "python3-oslo.messaging",
}

// versions returns a release's cells of the table of versions, or none if the packages were not
// listed.
func versions(t *testing.T, folder string) map[string]string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, "packages")); os.IsNotExist(err) {
		return nil
	}
	version := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^(\S+) (?:\d+:)?(\S+)$`).FindAllStringSubmatch(repository.Read(t, filepath.Join(folder, "packages")), -1) {
		version[found[1]] = found[2] // without Debian's epoch
	}
	cells := map[string]string{}
	for row, name := range packaged {
		cells[row] = version[name]
	}
	return cells
}

// results returns a release's cells of the table of features.
func results(t *testing.T, folder string) map[string]string {
	t.Helper()
	outcomes, cells := readRan(t, folder), map[string]string{}
	for _, f := range features {
		cells[f.name] = f.cell(outcomes)
	}
	return cells
}

// filled returns the page with the cells of a column in the tables whose heading begins with a name. An
// empty cell leaves what the page has.
func filled(page, heading, name string, cells map[string]string) string {
	lines, column := strings.Split(page, "\n"), -1
	for i, line := range lines {
		row := strings.Split(line, "|")
		switch {
		case strings.HasPrefix(line, "| "+heading+"|") && slices.Contains(row, " "+name+" "):
			column = slices.Index(row, " "+name+" ")
		case len(row) < 2:
			column = -1 // after the table
		case column > 0 && cells[strings.TrimSpace(row[1])] != "":
			row[column] = " " + cells[strings.TrimSpace(row[1])] + " "
			lines[i] = strings.Join(row, "|")
		}
	}
	return strings.Join(lines, "\n")
}

// With ALMANAC_RAN, the folder of what ran, this test writes what ran beside each release that it
// has. All else stays as it was.
func TestThePageOnReleasesHasWhatRan(t *testing.T) {
	const file = "../../docs/releases.md"
	page, rows := repository.Read(t, file), ""
	for _, f := range features {
		rows += regexp.QuoteMeta("| "+f.name+" |") + `[^\n]*\n`
		if n := strings.Count(page, "\n| "+f.name+" |"); n != 1 {
			t.Errorf("docs/releases.md has %d rows %q, want 1", n, f.name)
		}
	}
	if !regexp.MustCompile("---\\|\n" + rows + "\n").MatchString(page) {
		t.Errorf("docs/releases.md needs a table with a row for each feature, in this order:\n%s", rows)
	}
	ran := os.Getenv("ALMANAC_RAN")
	if ran == "" || t.Failed() {
		return
	}
	for _, release := range []string{"zed", "epoxy", "newest"} {
		folder := filepath.Join(ran, release)
		page = filled(page, "", release, versions(t, folder))
		page = filled(page, "feature ", release, results(t, folder))
	}
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWhatDidNotRunStaysOnThePage(t *testing.T) {
	const page = "| | zed | epoxy |\n|---|---|---|\n| Nova | 26 | 31 |\n| life | | |\n\n" +
		"| feature | zed | epoxy |\n|---|---|---|\n| life | by hand | by hand |\n| images | by hand | |\n\n| life | | |\n"
	want := strings.Replace(page, "| life | by hand | by hand |", "| life | by hand | green |", 1)
	if got := filled(page, "feature ", "epoxy", map[string]string{"life": "green", "images": "", "Nova": "32"}); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	want = strings.Replace(page, "| 31 |", "| 32 |", 1)
	if got := filled(page, "", "epoxy", map[string]string{"Nova": "32"}); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
}

func TestACellSaysWhatRan(t *testing.T) {
	f := feature{"life", []string{"TestA", "TestB/replace", "pkg/store"}}
	folder := t.TempDir()
	said := func(lines string) string {
		t.Helper()
		text := strings.NewReplacer("/:", `","Test":"`, "*", `{"Time":"2026-11-26T0`, "@", `:00:00Z","Action":"`, "~", `","Package":"`+module+"/").Replace(lines)
		if err := os.WriteFile(filepath.Join(folder, "life.json"), []byte("lab: up\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return f.cell(readRan(t, folder))
	}
	const store = "\n*1@pass~pkg/store/:TestOpen\"}\n*1@pass~pkg/store\"}"
	const whole = "*1@pass~tests/cloud/:TestA\"}\n*1@pass~tests/cloud/:TestB/replace\"}" + store
	for lines, want := range map[string]string{
		"":                                      "",
		whole:                                   "green",
		"*1@pass~tests/cloud/:TestA\"}" + store: "in part",
		whole + "\n*1@skip~tests/cloud/:TestA/stock\"}":                          "in part",
		whole + "\n*1@skip~pkg/store/:TestMemory/keys\"}":                        "green",
		whole + "\n*2@skip~tests/cloud/:TestA\"}":                                "green",
		whole + "\n*2@fail~tests/cloud/:TestB/stock\"}":                          "green",
		whole + "\n*2@fail~tests/cloud/:TestB/replace/zones\"}":                  "fails: `TestB`",
		whole + "\n*2@fail~pkg/store\"}":                                         "fails: `pkg/store`",
		whole + "\n*2@fail~tests/cloud/:TestA\"}\n*3@pass~tests/cloud/:TestA\"}": "green",
		"*1@skip~tests/cloud/:TestA\"}":                                          "",
	} {
		if got := said(lines); got != want {
			t.Errorf("the cell is %q, want %q, of\n%s", got, want, lines)
		}
	}
}
