package api

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// resolveInterrupt is the body of an answer, by node or by token.
type resolveInterrupt struct {
	ResumeValue json.RawMessage `json:"resumeValue"`
}

// resumeValue is the whole body of an answer at /approvals, with the members of both kinds of
// answers.
type resumeValue struct {
	Action  string          `json:"action,omitempty"`
	Comment string          `json:"comment,omitempty"`
	Answers json.RawMessage `json:"answers,omitempty"`
}

// resolved is the state of a run after an answer.
type resolved struct {
	RunID  store.RunID     `json:"runId"`
	NodeID string          `json:"nodeId"`
	Status timeline.Status `json:"status"`
}

// interruptAPI has the routes of questions in openwop's form, by node and by signed token.
type interruptAPI struct {
	find      lookup
	questions host.Questions
	streams   *stream.Hub
	tokens    *access.Tokens
	posts     *access.Limiter // answers by token
	base      baseURL
}

func (a *interruptAPI) routes() []route {
	codes := []string{"interrupt_not_found", "interrupt_already_resolved", "no_pending_interaction", "interrupt_cancelled"}
	return documented("api.md#interrupts", []route{
		{Route: web.Route{Method: "POST", Path: "/v1/runs/:runId/interrupts/:nodeId", Scope: access.ApprovalsRespond,
			Keyed: true, Handle: a.resolve},
			summary: "Answer the question that a node waits for", body: resolveInterrupt{}, answer: resolved{},
			codes: codes},
		{Route: web.Route{Method: "POST", Path: "/v1/runs/:runId/approvals/:nodeId", Scope: access.ApprovalsRespond,
			Keyed: true, Handle: a.approveNode},
			summary: "The same, with the value as the body", body: resumeValue{}, answer: resolved{}, codes: codes},
		{Route: web.Route{Method: "GET", Path: "/v1/interrupts/:token", Open: true, Handle: a.tokenInterrupt},
			see: "api.md#signed-tokens", summary: "Read the question that a signed token is for; changes nothing",
			answer: timeline.InterruptPayload{},
			codes:  append([]string{"interrupt_expired"}, codes...)},
		{Route: web.Route{Method: "POST", Path: "/v1/interrupts/:token", Open: true, Handle: a.tokenResolve},
			see: "api.md#signed-tokens", summary: "Answer the question that a signed token is for",
			body: resolveInterrupt{}, answer: resolved{},
			codes: append([]string{"interrupt_expired", "rate_limited"}, codes...)},
	})
}

func (a *interruptAPI) resolve(c *fiber.Ctx) error {
	defer web.Wipe(c)
	r, in, err := a.interrupt(c)
	if err != nil {
		return err
	}
	var q resolveInterrupt
	if err := web.Body(c, &q); err != nil {
		return err
	}
	return a.answer(c, r, in, q.ResumeValue)
}

// approveNode serves the older openwop path, whose contract has no 422: a cancelled interrupt is
// 409 there.
func (a *interruptAPI) approveNode(c *fiber.Ctx) error {
	defer web.Wipe(c)
	r, in, err := a.interrupt(c)
	if err == nil {
		var q resumeValue
		if err = web.Body(c, &q); err == nil {
			var body []byte
			if body, err = web.RawBody(c); err == nil {
				err = a.answer(c, r, in, body)
			}
		}
	}
	var p *web.Problem
	if errors.As(err, &p) && p.Code == "interrupt_cancelled" {
		p.Status = 409
	}
	return err
}

// interrupt returns the newest interrupt of the node in the path.
func (a *interruptAPI) interrupt(c *fiber.Ctx) (store.Run, timeline.Interrupt, error) {
	r, err := a.find.run(c)
	if err != nil {
		return r, timeline.Interrupt{}, err
	}
	node, err := web.Param(c, "nodeId")
	if err != nil {
		return r, timeline.Interrupt{}, noInterrupt()
	}
	var in timeline.Interrupt
	found := false
	err = a.streams.Fold(web.Context(c), r.ID, func(_ store.Run, f *timeline.Fold) { in, found = f.InterruptOfNode(node) })
	if err == nil && !found {
		err = noInterrupt()
	}
	return r, in, err
}

func noInterrupt() error {
	return web.NewProblem(0, "interrupt_not_found", "No question was ever pending there.")
}

// answer resolves an interrupt with a value in openwop's form.
func (a *interruptAPI) answer(c *fiber.Ctx, r store.Run, in timeline.Interrupt, value json.RawMessage) error {
	if err := errAlreadyClosed(in); err != nil {
		return err
	}
	q := host.Answer{RunID: r.ID, InteractionID: in.InteractionID}
	var err error
	if q.Status, q.Data, err = readAnswer(in, value); err != nil {
		return err
	}
	if err := a.questions.Answer(web.Context(c), q); err != nil {
		return a.tooLate(c, r.ID, in, err)
	}
	out := resolved{RunID: r.ID, NodeID: in.NodeID}
	err = a.streams.Fold(web.Context(c), r.ID, func(_ store.Run, f *timeline.Fold) { out.Status = f.Status() })
	if err != nil {
		return err
	}
	return web.JSON(c, 200, out)
}

// errAlreadyClosed refuses an answer to an interrupt that is no longer open.
func errAlreadyClosed(in timeline.Interrupt) error {
	switch code := in.Closed.Code(); code {
	case "":
		return nil
	case "interrupt_cancelled":
		return web.NewProblem(0, code, "The run was cancelled, or ended, while the question was open.")
	case "interrupt_already_resolved":
		return web.NewProblem(0, code, "The question was answered before.")
	default:
		return web.NewProblem(0, code, "The question is not open any more.")
	}
}

// tooLate translates the refusal of an answer for an interrupt that was closed meanwhile.
func (a *interruptAPI) tooLate(c *fiber.Ctx, run store.RunID, in timeline.Interrupt, err error) error {
	var refused *host.Refusal
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case "conflict", "no_pending_interaction", "interaction_id_mismatch":
	default:
		return err
	}
	now := in
	if err := a.streams.Fold(web.Context(c), run,
		func(_ store.Run, f *timeline.Fold) { now, _ = f.InterruptByID(in.ID) }); err != nil {
		return err
	}
	if why := errAlreadyClosed(now); why != nil {
		return why
	}
	return errAlreadyClosed(timeline.Interrupt{Closed: timeline.Answered})
}

// readAnswer turns a resume value into an answer to the interaction. An invalid value leaves the
// question open and is not repeated in the error.
func readAnswer(in timeline.Interrupt,
	value json.RawMessage) (status string, data map[string]json.RawMessage, err error) {
	v, parse := strictjson.Parse(value, strictjson.ParseOptions{})
	if len(value) == 0 || parse != nil {
		return "", nil, web.Invalid(web.Field{Path: "resumeValue", Rule: "an object"})
	}
	if in.Kind == "approval" {
		return readDecision(in, v)
	}
	answers, ok := v.Member("answers")
	if ok && answers.Is(strictjson.KindArray) {
		data, err = answerList(answers)
	} else {
		data, err = answerObject(answers)
	}
	return abi.AnswerSuccess, data, err
}

func readDecision(in timeline.Interrupt,
	v strictjson.Value) (status string, data map[string]json.RawMessage, err error) {
	m, _ := v.Member("action")
	action, _ := m.Text()
	if action == "edit" { // openwop has both spellings
		action = abi.DecisionEdit
	}
	offered := abi.Decisions // the question accepts some of these
	if in.InteractionKind == abi.KindManualAction {
		offered = []string{abi.DecisionAccept, abi.DecisionReject}
	}
	if !slices.Contains(offered, action) {
		return "", nil, web.Invalid(web.Field{Path: "resumeValue.action",
			Rule: "one of " + strings.Join(offered, ", ")})
	}
	if in.InteractionKind == abi.KindManualAction {
		if action == abi.DecisionReject {
			return abi.AnswerCancelled, nil, nil
		}
		return abi.AnswerSuccess, nil, nil
	}
	data = map[string]json.RawMessage{"action": strictjson.AppendQuote(nil, action)}
	for _, name := range []string{"comment", "edited"} {
		m, ok := v.Member(name)
		if !ok || m.Absent() {
			continue
		}
		if !m.Is(strictjson.KindString) {
			return "", nil, web.Invalid(web.Field{Path: "resumeValue." + name, Rule: "a text"})
		}
		data[name] = append(json.RawMessage(nil), m.Raw...)
	}
	return abi.AnswerSuccess, data, nil
}

// maxAnswers bounds the members of an answer; the broker bounds their size.
const maxAnswers = 32

func answerObject(answers strictjson.Value) (map[string]json.RawMessage, error) {
	if !answers.Is(strictjson.KindObject) || answers.Len() > maxAnswers {
		return nil, web.Invalid(web.Field{Path: "resumeValue.answers",
			Rule: "an object of at most 32 answers, or an array of {id, answer}"})
	}
	data := map[string]json.RawMessage{}
	for name, m := range answers.Members() {
		data[name] = append(json.RawMessage(nil), m.Raw...)
	}
	return data, nil
}

// answerList parses answers as an array of {id, answer}.
func answerList(answers strictjson.Value) (map[string]json.RawMessage, error) {
	data := map[string]json.RawMessage{}
	for item := range answers.Items() {
		id, _ := item.Member("id")
		name, ok := id.Text()
		answer, has := item.Member("answer")
		if _, twice := data[name]; !ok || !has || twice || len(data) == maxAnswers {
			return nil, web.Invalid(web.Field{Path: "resumeValue.answers",
				Rule: "an object of at most 32 answers, or an array of {id, answer}"})
		}
		data[name] = append(json.RawMessage(nil), answer.Raw...)
	}
	return data, nil
}

// addToken adds a signed token to a run's snapshot if its question may be answered by token.
func (a *interruptAPI) addToken(c *fiber.Ctx, s *timeline.Snapshot) error {
	if s.Interrupt == nil {
		return nil
	}
	var in timeline.Interrupt
	err := a.streams.Fold(web.Context(c), s.RunID,
		func(_ store.Run, f *timeline.Fold) { in, _ = f.InterruptByID(s.Interrupt.InterruptID) })
	if err != nil || !mayHaveToken(in) {
		return err
	}
	var ends time.Time
	if in.ExpiresAt != nil {
		ends = *in.ExpiresAt
	}
	token, _ := a.tokens.Sign(s.RunID, in.NodeID, in.ID, ends)
	withToken := *s.Interrupt
	withToken.InterruptToken, withToken.CallbackURL = token, a.base.of(c)+"/v1/interrupts/"+token
	s.Interrupt = &withToken
	return nil
}

// mayHaveToken reports whether a signed token may answer a question. Secrets and work in a browser
// require an authenticated owner.
func mayHaveToken(in timeline.Interrupt) bool {
	switch in.InteractionKind {
	case abi.KindApproval:
		return true
	case abi.KindClarification:
		return !secret(in)
	}
	return false
}

// byToken returns the interrupt that a signed token is for.
func (a *interruptAPI) byToken(c *fiber.Ctx) (store.Run, timeline.Interrupt, error) {
	var in timeline.Interrupt
	unknown := web.NewProblem(0, "interrupt_not_found", "The token is not one of this host.")
	token, err := web.Param(c, "token")
	if err != nil {
		return store.Run{}, in, unknown
	}
	claim, err := a.tokens.Verify(token)
	expired := errors.Is(err, access.ErrTokenExpired)
	if err != nil && !expired {
		return store.Run{}, in, unknown
	}
	r, err := a.find.runs.Run(web.Context(c), claim.RunID)
	if errors.Is(err, store.ErrNotFound) {
		return r, in, unknown
	}
	if err != nil {
		return r, in, err
	}
	found := false
	err = a.streams.Fold(web.Context(c), r.ID,
		func(_ store.Run, f *timeline.Fold) { in, found = f.InterruptByID(claim.InterruptID) })
	switch {
	case err != nil:
		return r, in, err
	case !found || !mayHaveToken(in):
		return r, in, unknown
	}
	if why := errAlreadyClosed(in); why != nil {
		return r, in, why
	}
	if expired {
		return r, in, web.NewProblem(0, "interrupt_expired", "The token has expired; read the run for another.")
	}
	return r, in, nil
}

func (a *interruptAPI) tokenInterrupt(c *fiber.Ctx) error {
	_, in, err := a.byToken(c)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, in.Payload)
}

func (a *interruptAPI) tokenResolve(c *fiber.Ctx) error {
	token, err := web.Param(c, "token")
	if err != nil {
		return web.NewProblem(0, "interrupt_not_found", "The token is not one of this host.")
	}
	if err := a.posts.Take(access.TokenName(token)); err != nil {
		return err
	}
	r, in, err := a.byToken(c)
	if err != nil {
		return err
	}
	var q resolveInterrupt
	if err := web.Body(c, &q); err != nil {
		return err
	}
	return a.answer(c, r, in, q.ResumeValue)
}

// secret reports whether a question asks for a secret, according to its schema.
func secret(in timeline.Interrupt) bool {
	v, err := strictjson.Parse(in.Payload.ResumeSchema, strictjson.ParseOptions{})
	if err != nil {
		return true // an unreadable question counts as secret
	}
	properties, _ := v.Member("properties")
	for name, p := range properties.Members() {
		marked, _ := p.Member("secret")
		if yes, _ := marked.Bool(); yes || timeline.SecretLooking(name) {
			return true
		}
	}
	return false
}
