package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Schedules lists them (A198).
func (c *Client) Schedules(ctx context.Context) ([]host.Schedule, error) {
	return all[host.Schedule](ctx, c, at("schedules"), nil)
}

// Schedule is that of a connection (A197).
func (c *Client) Schedule(ctx context.Context, id store.ConnectionID) (out host.Schedule, err error) {
	return out, c.get(ctx, scheduleOf(id), nil, &out)
}

// PutSchedule says when a connection runs by itself (A196).
func (c *Client) PutSchedule(ctx context.Context, id store.ConnectionID, d host.ScheduleDefinition) (out host.Schedule, err error) {
	return out, c.call(ctx, http.MethodPut, scheduleOf(id), nil, d, &out)
}

// PauseSchedule stops its ticks, ResumeSchedule lets them go on (A199).
func (c *Client) PauseSchedule(ctx context.Context, id store.ConnectionID) (out host.Schedule, err error) {
	return out, c.call(ctx, http.MethodPost, scheduleOf(id)+"/pause", nil, nil, &out)
}

// ResumeSchedule is the end of PauseSchedule.
func (c *Client) ResumeSchedule(ctx context.Context, id store.ConnectionID) (out host.Schedule, err error) {
	return out, c.call(ctx, http.MethodPost, scheduleOf(id)+"/resume", nil, nil, &out)
}

// DeleteSchedule removes it; history stays (A200).
func (c *Client) DeleteSchedule(ctx context.Context, id store.ConnectionID) error {
	return c.call(ctx, http.MethodDelete, scheduleOf(id), nil, nil, nil)
}

// History is what a schedule did, newest first, and its sums (A201).
type History struct {
	Data       []host.Tick     `json:"data"`
	Statistics host.Statistics `json:"statistics"`
}

// ScheduleHistory returns at most limit entries, of which a page has at most 500.
func (c *Client) ScheduleHistory(ctx context.Context, id store.ConnectionID, limit int) (out History, err error) {
	return out, c.get(ctx, scheduleOf(id)+"/history", url.Values{"limit": {strconv.Itoa(limit)}}, &out)
}

func scheduleOf(id store.ConnectionID) string { return at("connections", string(id), "schedule") }
