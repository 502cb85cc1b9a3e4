// SPDX-License-Identifier: Apache-2.0

package built

import (
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// The modes in which almanacd serves Nova's topic `scheduler`.
const Interpose, Replace = "interpose", "replace"

// AtTopic returns the settings of an almanacd that serves Nova's topic.
func AtTopic(t testing.TB, way, behind string) []string {
	return []string{
		"OS_SCHEDULER__MODE=" + way, "OS_SCHEDULER__FORWARD_TRANSPORT_URL=" + behind,
		"OS_SCHEDULER__ENABLE_ISOLATED_AGGREGATE_FILTERING=true", // as in the lab's Nova
		"OS_NOVA__TRANSPORT_URL=" + labtest.NovaTransport(t), "OS_API_DATABASE__CONNECTION=" + labtest.NovaAPIDatabase(t),
	}
}

// BesideNova returns the settings of almanacds that serve Nova's topic together, with their own
// database.
func BesideNova(t testing.TB, cloud labtest.LabCloud, way, behind string) []string {
	t.Helper()
	database := labtest.Database(t)
	Migrate(t, database)
	return append(AtTopic(t, way, behind),
		"OS_DATABASE__CONNECTION="+database, "OS_DEFAULT__TRANSPORT_URL="+labtest.RabbitMQ(t),
		"OS_API__AUTH_STRATEGY=keystone", "OS_INVENTORY__SOURCE=openstack",
		"OS_KEYSTONE_AUTHTOKEN__AUTH_URL="+cloud.AuthURL, "OS_KEYSTONE_AUTHTOKEN__USERNAME="+labtest.Almanac.Name,
		"OS_KEYSTONE_AUTHTOKEN__PASSWORD="+labtest.Almanac.Password, "OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME="+labtest.Almanac.Project)
}

// TakeTopic stops nova-scheduler after an almanacd has started, and returns when almanacd serves
// the topic. The topic always needs a consumer: its fanout exchange disappears with the last
// queue, and without it Nova refuses to change aggregates.
func TakeTopic(t testing.TB) {
	t.Helper()
	labtest.TakeSchedulerAway(t)
	labtest.NewConductor(t, labtest.NovaTransport(t)).AwaitScheduler()
}
