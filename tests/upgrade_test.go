// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Three replicas of the previous version are upgraded while users book, as docs/operations.md describes: first the schema,
// then one replica after the other. Then each goes back and forth, so that both versions run side by side. No
// promise is lost or made twice.
func TestPromisesSurviveAnUpgradeAndTheWayBack(t *testing.T) {
	previous := os.Getenv("ALMANAC_TEST_PREVIOUS")
	if previous == "" {
		t.Skip("make test-upgrade runs it, with the almanacd of the previous version")
	}
	this := filepath.Join(commands, "almanacd")
	database, broker := labtest.StartMariaDB(t), labtest.StartRabbitMQ(t)
	connection := database.URL("almanac")
	migrateBy(t, previous, connection)
	settings := append(notifying(broker), "OS_DATABASE__CONNECTION="+connection)
	told := listen(t, broker.URL())
	r := newReplicas(t, settings, settings, settings)
	programs := []string{previous, previous, previous}
	for i := range programs {
		r.startOf(i, previous)
	}
	var history chronicle
	users := chaos(t, r, func(ctx context.Context) {
		pass(ctx, 3*time.Second)
		migrate(t, connection)
		history.note("the schema is of this version")
		for n := 0; pass(ctx, 3*time.Second); n++ {
			i := n % len(programs)
			switch {
			case programs[i] == previous:
				programs[i] = this
				history.note("a replica becomes one of this version")
			case n%2 == 0: // the first round upgrades all
				programs[i] = previous
				history.note("a replica becomes one of the previous version")
			default:
				history.note("a replica of this version starts again")
			}
			r.kill(i)
			r.startOf(i, programs[i])
		}
	})
	c := newChecker(t, "mysql", database.DSN("almanac"))
	promisesKept(t, c, users, &history, 0, told)
}

// The broker of three replicas is upgraded from RabbitMQ 4.0 to 4.3, with its data, while users book.
// No promise is lost or made twice, and all notifications arrive.
func TestPromisesSurviveAnUpgradeOfTheBroker(t *testing.T) {
	broker, database := labtest.StartRabbitMQOf(t, "epoxy"), labtest.StartMariaDB(t)
	connection := database.URL("almanac")
	migrate(t, connection)
	settings := append(notifying(broker), "OS_DATABASE__CONNECTION="+connection)
	told := listen(t, broker.URL())
	r := startReplicas(t, settings, settings, settings)
	var history chronicle
	users := chaos(t, r, func(ctx context.Context) {
		pass(ctx, 10*time.Second)
		history.note("RabbitMQ of the newest release takes the place of Epoxy's")
		broker.Upgrade("newest")
		<-ctx.Done()
	})
	c := newChecker(t, "mysql", database.DSN("almanac"))
	promisesKept(t, c, users, &history, 0, told)
}
