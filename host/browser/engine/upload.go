package engine

import (
	"github.com/sluicehost/sluice/host/browser/action"
	"github.com/sluicehost/sluice/host/browser/page"
)

// uploadFits stages the files, once.
func uploadFits(a *act, n *page.Node) *fault {
	if n.Tag != "input" || n.Type != "file" {
		return &fault{code: action.SemanticMismatch, stage: action.StageResolve}
	}
	if n.Disabled {
		return a.reject("disabled")
	}
	if len(a.req.Upload) > 1 && !n.Multiple {
		return &fault{code: action.SemanticMismatch, stage: action.StageResolve}
	}
	if a.work != nil {
		return nil
	}
	if a.opt.Files == nil {
		a.refused = &action.Refusal{Code: "capability_denied", Message: "uploads are not granted", Verb: a.req.Verb}
		return nil
	}
	staged, release, refused := a.opt.Files.Stage(a.ctx, a.req.Upload)
	if refused != nil {
		a.refused = refused
		return nil
	}
	a.work, a.release = staged, release
	return nil
}

func names(staged []StagedFile) []string {
	out := make([]string, len(staged))
	for i, f := range staged {
		out[i] = f.Name
	}
	return out
}

func uploadSend(a *act) (page.Delivery, error) {
	staged, _ := a.work.([]StagedFile)
	paths := make([]string, len(staged))
	for i, f := range staged {
		paths[i] = f.Path
	}
	return a.tab.Files(a.ctx, a.node(), paths)
}

func uploadTell(a *act) { a.details["files"] = a.work }
