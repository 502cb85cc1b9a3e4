// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Three replicas of the previous version are upgraded while users book, as docs/operations.md describes: first the schema,
// then one replica after the other. Then each goes back and forth, so that both versions run side by side. No
// promise is lost or made twice.
//
//make:test-upgrade
func TestPromisesSurviveAnUpgradeAndTheWayBack(t *testing.T) {
	previous := os.Getenv("ALMANAC_TEST_PREVIOUS")
	if previous == "" {
		t.Skip("make test-upgrade runs it, with the almanacd of the previous version")
	}
	this := filepath.Join(built.Commands(), "almanacd")
	database, broker := labtest.StartMariaDB(t), labtest.StartRabbitMQ(t)
	connection := database.URL("almanac")
	built.MigrateBy(t, previous, connection)
	settings := append(chaos.Notifying(broker), "OS_DATABASE__CONNECTION="+connection)
	told := chaos.Listen(t, broker.URL())
	r := chaos.NewReplicas(t, settings, settings, settings)
	programs := []string{previous, previous, previous}
	for i := range programs {
		r.StartOf(i, previous)
	}
	var history chaos.Chronicle
	users := chaos.Run(t, r, func(ctx context.Context) {
		chaos.Pass(ctx, 3*time.Second)
		built.Migrate(t, connection)
		history.Note("the schema is of this version")
		for n := 0; chaos.Pass(ctx, 3*time.Second); n++ {
			i := n % len(programs)
			switch {
			case programs[i] == previous:
				programs[i] = this
				history.Note("a replica becomes one of this version")
			case n%2 == 0: // the first round upgrades all
				programs[i] = previous
				history.Note("a replica becomes one of the previous version")
			default:
				history.Note("a replica of this version starts again")
			}
			r.Kill(i)
			r.StartOf(i, programs[i])
		}
	})
	c := chaos.NewChecker(t, "mysql", database.DSN("almanac"))
	chaos.PromisesKept(t, c, users, &history, 0, told)
}

// The broker of three replicas is upgraded from RabbitMQ 4.0 to 4.3, with its data, while users book.
// No promise is lost or made twice, and all notifications arrive.
//
//make:test-upgrade
func TestPromisesSurviveAnUpgradeOfTheBroker(t *testing.T) {
	broker, database := labtest.StartRabbitMQOf(t, "epoxy"), labtest.StartMariaDB(t)
	connection := database.URL("almanac")
	built.Migrate(t, connection)
	settings := append(chaos.Notifying(broker), "OS_DATABASE__CONNECTION="+connection)
	told := chaos.Listen(t, broker.URL())
	r := chaos.StartReplicas(t, settings, settings, settings)
	var history chaos.Chronicle
	users := chaos.Run(t, r, func(ctx context.Context) {
		chaos.Pass(ctx, 10*time.Second)
		history.Note("RabbitMQ of the newest release takes the place of Epoxy's")
		broker.Upgrade("newest")
		<-ctx.Done()
	})
	c := chaos.NewChecker(t, "mysql", database.DSN("almanac"))
	chaos.PromisesKept(t, c, users, &history, 0, told)
}
