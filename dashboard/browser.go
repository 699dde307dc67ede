package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A left file is an artifact that can be downloaded.
type left struct {
	Title string
	Size  int64
	URL   string
	At    string // what leads to the host that has it, if that is not this one
}

// leftBy returns the artifacts of a run whose files are kept.
func (u *runUI) leftBy(ctx context.Context, id store.RunID, all []timeline.Artifact) (out []left, err error) {
	for _, a := range all {
		title := a.Summary
		if title == "" {
			title = a.ArtifactType
		}
		there, err := host.KeptArtifact(ctx, u.files, id, a.ArtifactType, a.Size)
		var away *host.Refusal
		if errors.As(err, &away) && away.Code == "conflict" {
			page, _ := away.Details["url"].(string)
			out = append(out, left{title, a.Size, page, away.Message})
			continue
		}
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		out = append(out, left{title, a.Size, "/v1/runs/" + string(id) + "/artifacts/" +
			url.PathEscape(a.ArtifactID) + "/content", ""})
	}
	return out, nil
}

// shownHosts bounds the refused hosts on a run's page.
const shownHosts = 10

// A browserCard is what a run's page shows of its browser.
type browserCard struct {
	timeline.Browser
	Words  string // of State
	Tone   string
	Hosts  []timeline.DeniedHost // most refusals first
	Others int64                 // refusals of other hosts
}

func cardOf(b *timeline.Browser) *browserCard {
	if b == nil {
		return nil
	}
	w := surfaceWords[b.State]
	c := &browserCard{Browser: *b, Words: w.text, Tone: w.tone, Others: b.DeniedMore}
	if c.Words == "" {
		c.Words, c.Tone = "not known", "calm"
	}
	hosts := slices.Clone(b.Denied)
	slices.SortStableFunc(hosts, func(a, b timeline.DeniedHost) int { return int(b.Count - a.Count) })
	for i, h := range hosts {
		if i >= shownHosts {
			c.Others += h.Count
			continue
		}
		if h.Host == "" {
			h.Host = "no host name"
		}
		c.Hosts = append(c.Hosts, h)
	}
	return c
}

// surfaceWords names the states of a surface.
var surfaceWords = map[string]title{
	"requested":    {text: "asked for", tone: "calm"},
	"queued":       {text: "waits for a free place", tone: "warn"},
	"starting":     {text: "starting", tone: "live"},
	"ready":        {text: "open", tone: "live"},
	"probe_failed": {text: "does not answer", tone: "warn"},
	"failed":       {text: "failed", tone: "bad"},
	"released":     {text: "closed", tone: "calm"},
	"lost":         {text: "lost", tone: "bad"},
}

// browserText holds the members of browser events that are shown.
type browserText struct {
	Action       string
	Role         string
	URLHost      string `json:"url_host"`
	Verification string `json:"verification_result"`
	RuntimeCode  string `json:"runtime_code"`
	Attempts     int64
	Actions      *int64 // so far, in a run that reports only failures
	Host         string
	Port         int64
	Verdict      string
	Count        int64
	Granted      *bool
	Reason       string
	Code         string
	Profile      string
	Restored     bool                  `json:"profile_restored"`
	Probe        struct{ Code string } `json:"browser_surface_probe"`
	Mode         string
}

// browserLine returns title, detail and tone of a browser event's line. ok is false for other
// events and for those without more to say.
func browserLine(e store.Event) (name, detail, tone string, ok bool) {
	var d browserText
	_ = json.Unmarshal(e.Data, &d) // the payload is shown in full below in any case
	switch t := timeline.Type(e.Type); {
	case t == timeline.RunBrowserAction:
		name, detail, tone = d.action()
	case t == timeline.RunBrowserEgressDenied:
		detail, tone = d.denial(), "warn"
	case t == timeline.RunBrowserCookieHandoff:
		name, detail, tone = d.cookies()
	case strings.HasPrefix(e.Type, "run.browser_surface_"):
		detail = d.surface()
	default:
		return "", "", "", false
	}
	return name, detail, tone, true
}

// action describes an action, such as "Clicked a button · shop.example · proved", or what went
// wrong.
func (d *browserText) action() (name, detail, tone string) {
	if d.Actions != nil {
		return "Actions in the browser",
			plural(*d.Actions, "action") + " so far; of a long run only failures are shown one by one", "calm"
	}
	verb, known := verbWords[d.Action]
	if !known {
		verb = [2]string{"Did something in the browser", "Something in the browser failed"}
	}
	name, tone = verb[0], "good"
	what := []string{d.Role, d.URLHost}
	switch {
	case d.Verification == "verified" && d.Attempts > 1:
		what = append(what, "proved after "+plural(d.Attempts, "attempt"))
	case d.Verification == "verified":
		what = append(what, "proved")
	default:
		name, tone = verb[1], "warn"
		what = append(what, codeWord(d.RuntimeCode))
	}
	return name, dots(what...), tone
}

func (d *browserText) denial() string {
	where := d.Host
	if where == "" {
		where = "no host name"
	}
	if d.Port != 0 && d.Port != 443 && d.Port != 80 {
		where += ", port " + strconv.FormatInt(d.Port, 10)
	}
	times := ""
	if d.Count > 1 {
		times = plural(d.Count, "time")
	}
	return dots(where, verdictWord(d.Verdict), times)
}

func (d *browserText) cookies() (name, detail, tone string) {
	if d.Granted != nil && *d.Granted {
		return "Cookies were handed to the connector's requests", dots(d.Host, plural(d.Count, "cookie")), "calm"
	}
	return "Cookies were not handed over", dots(d.Host, reasonWord(d.Reason)), "warn"
}

func (d *browserText) surface() string {
	profile, restored, code := "", "", d.Code
	if d.Profile != "" {
		profile = "profile " + d.Profile
	}
	if d.Restored {
		restored = "the profile was damaged and is the one of before"
	}
	if code == "" {
		code = d.Probe.Code
	}
	return dots(profile, restored, reasonWord(code))
}

// dots joins the texts that are not empty.
func dots(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return strings.TrimSpace(t) == "" }), " · ")
}

// verbWords describes each action, done and failed.
var verbWords = map[string][2]string{
	"navigate": {"Opened a page", "Opening a page failed"},
	"click":    {"Clicked", "A click failed"},
	"type":     {"Typed", "Typing failed"},
	"fill":     {"Filled in a form", "Filling in a form failed"},
	"clear":    {"Emptied a field", "Emptying a field failed"},
	"press":    {"Pressed a key", "Pressing a key failed"},
	"select":   {"Chose an option", "Choosing an option failed"},
	"check":    {"Set a check box", "Setting a check box failed"},
	"adjust":   {"Adjusted a control", "Adjusting a control failed"},
	"scroll":   {"Scrolled", "Scrolling failed"},
	"drag":     {"Dragged something", "Dragging something failed"},
	"hover":    {"Pointed at something", "Pointing at something failed"},
	"upload":   {"Sent a file to the page", "Sending a file to the page failed"},
}

// codeWord explains a runtime code.
func codeWord(code string) string {
	if w, ok := codeWords[code]; ok {
		return w
	}
	if code == "" {
		return "it was not proved"
	}
	return reasonWord(strings.ToLower(code))
}

var codeWords = map[string]string{
	"ELEMENT_NOT_FOUND":          "nothing on the page is what was meant",
	"STALE_REFERENCE":            "the page changed meanwhile",
	"AMBIGUOUS_TARGET":           "more than one thing on the page may be meant",
	"TIMEOUT":                    "it took too long",
	"ACTION_REJECTED":            "the page or a limit did not let it",
	"VERIFICATION_FAILED":        "it was done, and what should follow did not",
	"EXPECT_STATE_MISMATCH":      "the page is not as it was expected to be",
	"CONTROL_CONVERGENCE_FAILED": "the control did not come to the value that was wanted",
	"SEMANTIC_MISMATCH":          "something else happened than what was meant",
	"UNKNOWN":                    "it failed without a known cause",
}

// verdictWord explains why a request was refused.
func verdictWord(verdict string) string {
	if w, ok := verdictWords[verdict]; ok {
		return w
	}
	return reasonWord(verdict)
}

var verdictWords = map[string]string{
	"host_denied":        "the connection may not reach it",
	"scheme_denied":      "not over this kind of connection",
	"port_denied":        "not at this port",
	"address_denied":     "it leads to an address that is not public",
	"server_name_denied": "it asked for another server than it said",
	"protocol_denied":    "neither TLS nor a web socket",
	"tunnel_limit":       "too many connections at once",
	"byte_limit":         "the run has used up its bytes",
}
