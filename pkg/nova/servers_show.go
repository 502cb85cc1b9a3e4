package nova

import "context"

// Server returns the server with the id. A missing server is a NotFound fault, a cell that does
// not answer an Unavailable one.
func (c *Client) Server(ctx context.Context, id string) (Server, error) {
	doing := "show server " + id
	var body struct {
		Server *server `json:"server"`
	}
	if err := c.service.Get(ctx, doing, serverPath(id), &body); err != nil {
		return Server{}, err
	}
	if body.Server == nil {
		return Server{}, c.service.Malformed(doing, "it contains no server")
	}
	if body.Server.Status == "UNKNOWN" && body.Server.Flavor == nil {
		return Server{}, cellAway(doing)
	}
	one, err := body.Server.known()
	if err != nil {
		return Server{}, c.service.Malformed(doing, "%w", err)
	}
	return one, nil
}
