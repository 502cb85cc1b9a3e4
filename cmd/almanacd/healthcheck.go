// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout is how long the health check waits for an answer.
const healthTimeout = 5 * time.Second

// healthcheckCommand returns `healthcheck`.
func (s *service) healthcheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "healthcheck", Args: cobra.NoArgs,
		Short: "Ask the almanacd of this configuration whether it is healthy",
		Long: "Ask the almanacd of this configuration whether it is healthy. The exit status is 1 if it does\n" +
			"not answer, is about to stop, or does not reach its database.",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			return checkHealth(c.Context(), net.JoinHostPort(cfg.API.Host, strconv.Itoa(cfg.API.Port)), c.OutOrStdout())
		},
	}
}

// checkHealth prints what the almanacd at an address answers; any answer but 200 is an error.
func checkHealth(ctx context.Context, address string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthcheck", nil)
	if err != nil {
		return fmt.Errorf("check the health: %w", err)
	}
	direct := http.Client{Transport: &http.Transport{}} // a proxy of the environment is for others
	answer, err := direct.Do(request)
	if err != nil {
		return fmt.Errorf("check the health: %w", err)
	}
	defer answer.Body.Close()
	const most = 4096
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return fmt.Errorf("check the health: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("almanacd is not healthy: %s %s", answer.Status, body)
	}
	_, err = out.Write(body)
	return err
}
