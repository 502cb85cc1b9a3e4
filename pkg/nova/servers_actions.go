package nova

import "context"

// Action is an action on a server, and on whose behalf it was done.
type Action struct {
	Action, RequestID string
	UserID, ProjectID string
}

// ActionsOf returns the actions on a server, the last first (GET
// /servers/{id}/os-instance-actions). Since 2.21 Nova also returns those of a deleted server,
// until it forgets it; then the result is a NotFound fault.
func (c *Client) ActionsOf(ctx context.Context, id string) ([]Action, error) {
	doing := "read the actions on server " + id
	var body struct {
		Acts []struct {
			Action    string `json:"action"`
			RequestID string `json:"request_id"`
			UserID    string `json:"user_id"`
			ProjectID string `json:"project_id"`
		} `json:"instanceActions"`
	}
	if err := c.service.Get(ctx, doing, serverPath(id)+"/os-instance-actions", &body); err != nil {
		return nil, err
	}
	if body.Acts == nil {
		return nil, c.service.Malformed(doing, "it contains no list of actions")
	}
	list := make([]Action, len(body.Acts))
	for i, a := range body.Acts {
		list[i] = Action(a)
	}
	return list, nil
}
