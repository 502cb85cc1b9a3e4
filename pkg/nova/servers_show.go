package nova

import (
	"context"
	"net/url"
)

// Server gives the server with the id. It fails with a NotFound fault where there is
// none, and with an Unavailable one where its cell does not answer.
func (c *Client) Server(ctx context.Context, id string) (Server, error) {
	doing := "show server " + id
	var body struct {
		Server *server `json:"server"`
	}
	if err := c.service.Get(ctx, doing, "servers/"+url.PathEscape(id), &body); err != nil {
		return Server{}, err
	}
	if body.Server == nil {
		return Server{}, c.service.Senseless(doing, "there is no server in it")
	}
	if body.Server.Status == "UNKNOWN" && body.Server.Flavor == nil {
		return Server{}, cellAway(doing)
	}
	one, err := body.Server.known()
	if err != nil {
		return Server{}, c.service.Senseless(doing, "%w", err)
	}
	return one, nil
}
