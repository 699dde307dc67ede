package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
)

// hostList lists the hosts that share the store. It is empty if there is only one.
type hostList struct {
	Hosts    []host.Member
	Lost     []host.Member
	Warnings []string
}

func (u *settingUI) lookHosts(ctx context.Context) (out hostList, err error) {
	all, err := u.hosts.Hosts(ctx)
	if err != nil {
		return out, err
	}
	if out.Lost, err = u.hosts.LostHosts(ctx); err != nil {
		return out, err
	}
	if len(all) == 1 && len(out.Lost) == 0 && !all[0].Draining {
		return out, nil
	}
	out.Hosts = all
	versions, starting := []string{}, false
	for _, m := range all {
		versions = append(versions, abi.Clean(m.Version))
		starting = starting || !m.Draining && m.Capacity > 0
		if !m.Admitted {
			out.Warnings = append(out.Warnings,
				fmt.Sprintf("%s is not admitted to the vault, so it runs nothing that needs a secret: give sluice hosts code there, and sluice hosts admit %s at a host that is.", abi.Clean(m.Name), abi.Clean(m.HostID)))
		}
		if m.Draining && m.Runs == 0 {
			out.Warnings = append(out.Warnings,
				fmt.Sprintf("%s is drained and has no runs: it can be stopped now.", abi.Clean(m.Name)))
		}
	}
	slices.Sort(versions)
	if versions = slices.Compact(versions); len(versions) > 1 {
		out.Warnings = append(out.Warnings,
			fmt.Sprintf("The hosts are of versions %s: bring all to the newest one before the next upgrade.",
				strings.Join(versions, " and ")))
	}
	if !starting {
		out.Warnings = append(out.Warnings, "No host starts runs: let one of them, or start another.")
	}
	return out, nil
}

// settingsLive streams changes of the hosts to the page.
func (u *settingUI) settingsLive(c *fiber.Ctx) error {
	return u.follow(c, "settings", func(ctx context.Context) (any, error) { return u.lookHosts(ctx) }, "hosts")
}

// drain stops a host from starting runs, or lets it start them again.
func (u *settingUI) drain(on bool) fiber.Handler {
	return button(func(c *fiber.Ctx) (string, error) { return web.ID(c, "hostId") }, func(ctx context.Context, id string) error {
		_, err := u.hosts.DrainHost(ctx, id, on)
		return err
	})
}
