package app

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/inventory/remote"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/nova/cells"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// source returns the source of this process's hosts: the file or the cloud with the role
// inventory, otherwise the process that has that role. With a message broker, the role inventory
// also answers other processes.
func (a *App) source(bus *bus) (inventory.Source, error) {
	if a.has(config.RoleInventory) {
		own, err := a.ownSource()
		if err != nil {
			return nil, err
		}
		if err := a.listenToNova(bus); err != nil {
			return nil, err
		}
		bus.hostsChanged = bus.reader()
		if bus.own == nil {
			return own, nil
		}
		client := a.newClient(bus.own)
		service := remote.NewService(own, client, exchange, stopwatch())
		a.add(job.Job{Name: "inventory service", Every: a.config.Inventory.RefreshInterval, Step: service.Refresh, Wake: bus.reader()})
		a.serveOn(bus.own, remote.Topic, service.Endpoint())
		return own, nil
	}
	if stages(a.config) && a.has(config.RoleAPI) {
		if err := a.listenToNova(bus); err != nil {
			return nil, err
		}
	}
	client := a.newClient(bus.own)
	source := remote.NewSource(client, exchange)
	bus.hostsChanged = bus.reader()
	a.services = append(a.services, bus.news(source.Changed()))
	a.serveOn(bus.own, remote.ChangesTopic, source.Endpoint())
	return source, nil
}

// newClient returns a client of Almanac's own topics.
func (a *App) newClient(transport oslo.Transport) *oslo.Client {
	client := oslo.NewClient(transport, oslo.ClientOptions{
		Queues: ownQueues, Timeout: a.config.Default.RPCResponseTimeout, NewID: uuid.NewString, Now: time.Now,
	})
	a.closers = append(a.closers, func() error {
		client.Close()
		return nil
	})
	return client
}

// serveOn makes this process answer on one of Almanac's own topics. Its own queue there is named
// after the machine, so that the next run uses it again: the queue is durable, and one per run
// would remain forever.
func (a *App) serveOn(transport oslo.Transport, topic string, endpoint oslo.Endpoint) {
	server := oslo.NewServer(transport, oslo.ServerOptions{
		Exchange: exchange, Topic: topic, Name: a.machine, Queues: ownQueues, Endpoints: []oslo.Endpoint{endpoint},
		NewID: uuid.NewString, Log: a.log.With("component", "messaging"),
	})
	a.services = append(a.services, service{"topic " + topic, server.Serve})
}

// ownSource returns the source of the hosts that this process reads itself.
func (a *App) ownSource() (inventory.Source, error) {
	if a.cloud == nil {
		return inventory.FileSource(a.config.Inventory.HostsFile), nil
	}
	o := openstack.Options{
		Preemptible: preemptibleRule(a.config), FullEvery: a.config.Inventory.FullPollInterval,
		Now: time.Now, Log: a.log.With("component", "inventory"),
	}
	o.LiveState = inventory.NewLiveState() // for packing plans, also if Almanac does not answer Nova
	if schedules(a.config) {
		told, err := a.openCells()
		if err != nil {
			return nil, err
		}
		if a.config.Nova.Notifications {
			a.cloud.builds = openstack.NewBuilds(time.Now)
		}
		o.Cells, o.Builds = told, a.cloud.builds
	}
	a.cloud.board = o.LiveState
	a.cloud.source = openstack.NewSource(a.cloud.compute, a.cloud.placement, o)
	return shareSource(a.cloud.source), nil
}

// openCells returns the source of each host's cell; nil if none is configured.
func (a *App) openCells() (openstack.Cells, error) {
	switch c := a.config.Cells; {
	case c.UUID != "":
		return cells.NewSingle(c.UUID)
	case c.File != "":
		return cells.NewFile(a.config.Beside(c.File)), nil
	case c.APIDatabase != "":
		database, err := cells.OpenDatabase(c.APIDatabase, a.log.With("component", "inventory"))
		if err != nil {
			return nil, fmt.Errorf("[api_database]: %w", err)
		}
		a.closers = append(a.closers, database.Close)
		return database, nil
	}
	return nil, nil
}
