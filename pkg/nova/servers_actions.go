package nova

import (
	"context"
	"net/url"
)

// Act is something that was done with a server, and in whose name.
type Act struct {
	Action, RequestID string
	UserID, ProjectID string
}

// ActsOf gives what was done with a server, the last first (GET
// /servers/{id}/os-instance-actions). Since 2.21 those of one that is deleted are told too,
// until Nova forgets it: then it fails with a NotFound fault.
func (c *Client) ActsOf(ctx context.Context, id string) ([]Act, error) {
	doing := "read what was done with server " + id
	var body struct {
		Acts []struct {
			Action    string `json:"action"`
			RequestID string `json:"request_id"`
			UserID    string `json:"user_id"`
			ProjectID string `json:"project_id"`
		} `json:"instanceActions"`
	}
	if err := c.service.Get(ctx, doing, "servers/"+url.PathEscape(id)+"/os-instance-actions", &body); err != nil {
		return nil, err
	}
	if body.Acts == nil {
		return nil, c.service.Senseless(doing, "there is no list of actions in it")
	}
	list := make([]Act, len(body.Acts))
	for i, a := range body.Acts {
		list[i] = Act(a)
	}
	return list, nil
}
