// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/servicelog"
	"github.com/almanac-cloud/almanac/pkg/sim/tenants"
)

// demonstration is the command demo.
type demonstration struct {
	folder      string // empty means a temporary one
	port        int    // of the flag, if it was given
	portGiven   bool
	busy        bool   // tenants make requests all the time
	seed        uint64 // of what they do
	speed       int    // how many times as fast as real time the time passes
	environment map[string]string
}

// The files of a demo; FOLDER in demoConfig stands for its folder.
var (
	//go:embed demo/almanac.conf
	demoConfig string
	//go:embed demo/fast.conf
	fastConfig string
	//go:embed demo/hosts.yaml
	demoHosts string
)

// demoCommand returns `demo`.
func (s *service) demoCommand() *cobra.Command {
	d := &demonstration{environment: s.environment}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Serve a simulated cloud in which everything can be tried",
		Long: "demo serves a simulated cloud on loopback, with all features and short times: machines that\n" +
			"are switched, servers, preemptible ones, a queue, images and live migrations. The decisions are\n" +
			"those of the service. The content of the cloud is lost when the demo stops; docs/demo.md is a\n" +
			"tour of ten minutes. With --speed the time passes faster, and tenants keep the cloud busy\n" +
			"unless --busy=false is given.\n\n" +
			"The database, the configuration, the hosts and the log are in a folder that demo deletes at\n" +
			"its end, unless --folder names one.",
		Example: "  almanacd demo\n  almanacd demo --busy\n  almanacd demo --speed 60\n  almanacd demo --folder ~/almanac-demo --port 1235",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if len(s.files)+len(s.dirs) > 0 {
				return fault.New(fault.Invalid, "the demo has a configuration of its own: use --folder, and change almanac.conf there")
			}
			d.portGiven = c.Flags().Changed("port")
			if !c.Flags().Changed("busy") {
				d.busy = d.speed > 1
			}
			return d.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&d.folder, "folder", "", "folder of the demo, which stays (default: a temporary one)")
	c.Flags().BoolVar(&d.busy, "busy", false, "simulate tenants who book, start servers, queue work and cancel all the time")
	c.Flags().Uint64Var(&d.seed, "seed", 1, "what the tenants of --busy do")
	c.Flags().IntVar(&d.speed, "speed", 1, fmt.Sprintf("how many times as fast as real time the time passes, up to %d; only without --folder", app.MostSpeed))
	c.Flags().IntVar(&d.port, "port", 1234, "port on 127.0.0.1 instead of [api] port; 0 is any free port")
	return c
}

func (d *demonstration) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	pace, err := d.pace()
	if err != nil {
		return err
	}
	folder, remove, err := d.furnish()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	cfg, err := d.configuration(folder)
	if err != nil {
		return fmt.Errorf("read the configuration of the demo:\n%w", err)
	}
	if cfg.Inventory.Source != config.SourceSimulated {
		return fault.Field("[inventory] source", "must be simulated in a demo; start almanacd with --config-file for anything else")
	}
	if d.portGiven {
		cfg.API.Port = d.port
	}
	log, err := servicelog.Open(cfg.Default, "almanacd", stderr, serving.LogHandler)
	if err != nil {
		return err
	}
	defer log.Close()
	a, err := app.Open(ctx, cfg, pace, version, log.Logger)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := welcome.Execute(stdout, map[string]any{
		"URL": a.URL(), "Folder": folder, "Log": cfg.Default.LogFile, "Almanac": besideUs(os.Args[0]), "Speed": pace.Speed(),
	}); err != nil {
		return err
	}
	if !d.busy {
		return a.Run(ctx)
	}
	almanac, err := client.New(client.Options{URL: a.URL()})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var living sync.WaitGroup
	living.Go(func() {
		between, stretch := d.rhythm()
		tenants.Live(ctx, tenants.Options{
			Bookings: almanac, Servers: almanac, Queue: almanac, Seed: d.seed, Pace: between, Stretch: stretch,
			Now: pace.Now, Wait: pace.Wait, Log: log.Logger,
		})
	})
	err = a.Run(ctx)
	stop()
	living.Wait()
	return err
}

// pace returns how fast the time passes. A folder that stays would contain records from the future
// of its next run.
func (d *demonstration) pace() (app.Pace, error) {
	if d.speed != 1 && d.folder != "" {
		return app.Pace{}, fault.Field("--speed", "must be 1 with --folder: the records there would lie in the future of the next demo")
	}
	return app.NewPace(d.speed)
}

// configuration reads the configuration of the demo.
func (d *demonstration) configuration(folder string) (config.Config, error) {
	files := []string{filepath.Join(folder, "almanac.conf")}
	if d.speed > 1 {
		files = append(files, filepath.Join(folder, "fast.conf"))
	}
	return config.Load(files, nil, d.environment)
}

// rhythm returns the mean time between two requests of the tenants, and what the times in their
// requests are multiplied by. Where time passes fast, they ask for hours, but not for weeks.
func (d *demonstration) rhythm() (between time.Duration, stretch int) {
	if d.speed == 1 {
		return 3 * time.Second, 1
	}
	stretch = min((d.speed+4)/5, 12)
	return time.Duration(stretch) * 25 * time.Second, stretch
}

// furnish returns the folder of the demo with the files that it lacked, and a function that removes
// the folder if it is temporary.
func (d *demonstration) furnish() (folder string, remove func() error, err error) {
	remove = func() error { return nil }
	if d.folder == "" {
		if folder, err = os.MkdirTemp("", "almanac-demo-"); err != nil {
			return "", nil, fmt.Errorf("make a folder for the demo: %w", err)
		}
		remove = func() error { return os.RemoveAll(folder) }
	} else if folder, err = filepath.Abs(d.folder); err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	files := map[string]string{
		"almanac.conf": strings.ReplaceAll(demoConfig, "FOLDER", folder), "hosts.yaml": demoHosts, "tariff.csv": demoTariff(time.Now()),
	}
	if d.speed > 1 {
		files["fast.conf"] = fastConfig
	}
	for name, text := range files {
		if err == nil {
			err = writeNew(filepath.Join(folder, name), text)
		}
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("prepare the folder of the demo: %w", err), remove())
	}
	return folder, remove, nil
}

// writeNew writes a file unless it exists.
func writeNew(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

var welcome = template.Must(template.New("").Parse(`Almanac serves a simulated cloud: its machines and servers exist in the memory of this process.
{{- if gt .Speed 1}}
Its time passes {{.Speed}} times as fast as real time.
{{- end}}

  page:   {{.URL}}/dashboard/
  API:    {{.URL}}/v1
  folder: {{.Folder}}
  log:    {{.Log}}

In another terminal:

  export ALMANAC_URL={{.URL}}
  {{.Almanac}} host list
  {{.Almanac}} reservation create first --quantity 2 --duration 1h
  {{.Almanac}} demo server create web --flavor large --hint reservation=first
  {{.Almanac}} demo server create cheap --flavor large --preemptible
  {{.Almanac}} besteffort submit frames --flavor large --image debian-13 --duration 10m --vms 4
  {{.Almanac}} energy mode auto

docs/demo.md is a tour of ten minutes. Ctrl-C stops the demo.
`))
