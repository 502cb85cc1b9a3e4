package nova

import (
	"context"
	"net/http"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// ServerRequest is a request for a server (POST /servers).
type ServerRequest struct {
	Name          string
	Flavor, Image string // ids
	// Networks are "none" or "auto", or the ids of networks.
	Networks []string
	KeyName  string
	UserData string // base64
	Metadata map[string]string
	Hints    map[string]string // for the scheduler
}

// CreateServer requests a server on behalf of the client's user, and does not wait for it. A
// request that Nova rejects, for example for a missing flavor, is an Invalid fault, an exceeded
// quota a Denied one.
func (c *Client) CreateServer(ctx context.Context, r ServerRequest) (id string, err error) {
	server := map[string]any{"name": r.Name, "flavorRef": r.Flavor, "imageRef": r.Image, "networks": networks(r.Networks)}
	for name, value := range map[string]string{"key_name": r.KeyName, "user_data": r.UserData} {
		if value != "" {
			server[name] = value
		}
	}
	if len(r.Metadata) > 0 {
		server["metadata"] = r.Metadata
	}
	body := map[string]any{"server": server}
	if len(r.Hints) > 0 {
		body["os:scheduler_hints"] = r.Hints
	}
	const doing = "create a server"
	var made struct {
		Server struct {
			ID string `json:"id"`
		} `json:"server"`
	}
	err = c.service.Send(ctx, doing, http.MethodPost, "servers", body, &made, http.StatusAccepted)
	if err == nil && made.Server.ID == "" {
		err = c.service.Malformed(doing, "it contains no server id")
	}
	return made.Server.ID, err
}

func networks(named []string) any {
	if len(named) == 1 && (named[0] == "none" || named[0] == "auto") {
		return named[0]
	}
	list := make([]map[string]string, len(named))
	for i, id := range named {
		list[i] = map[string]string{"uuid": id}
	}
	return list
}

// The methods below order an action on a server, like those of servers_order.go. A server is
// suspended and resumed on its present host.

// SuspendServer writes the memory of a server to its host's disk and stops it.
func (c *Client) SuspendServer(ctx context.Context, id string) error {
	return c.order(ctx, "suspend server "+id, id, map[string]any{"suspend": nil})
}

// ResumeServer continues a suspended server.
func (c *Client) ResumeServer(ctx context.Context, id string) error {
	return c.order(ctx, "resume server "+id, id, map[string]any{"resume": nil})
}

// LockServer keeps the owner of a server from acting on it. The owner can read the reason if
// Nova speaks 2.73. Only an admin unlocks what an admin has locked (nova/compute/api.py lock).
func (c *Client) LockServer(ctx context.Context, id, reason string) error {
	spoken, err := c.Microversion(ctx)
	if err != nil {
		return err
	}
	action := map[string]any{"lock": nil}
	if !spoken.Less(openstack.Microversion{Major: 2, Minor: 73}) {
		action["lock"] = map[string]any{"locked_reason": reason}
	}
	return c.order(ctx, "lock server "+id, id, action)
}

// UnlockServer lets the owner of a server act on it again.
func (c *Client) UnlockServer(ctx context.Context, id string) error {
	return c.order(ctx, "unlock server "+id, id, map[string]any{"unlock": nil})
}
