package guest

import (
	"context"
	"log/slog"
	"slices"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// Log writes one line of diagnostics. args are alternating names and values, as in slog. It
// is not an error if the host drops the line.
func (r *Run) Log(level slog.Level, message string, args ...any) error {
	var rec slog.Record
	rec.Add(args...)
	var fields logFields
	rec.Attrs(func(a slog.Attr) bool {
		fields.add("", a)
		return true
	})
	return r.logLine(level, message, &fields.record)
}

// LogHandler returns a slog.Handler that writes lines as Log does.
func (r *Run) LogHandler() slog.Handler { return &logHandler{run: r} }

func (r *Run) logLine(level slog.Level, message string, fields *Record) error {
	b := strictjson.AppendQuote([]byte(`{"level":`), levelName(level))
	b = strictjson.AppendQuote(append(b, `,"message":`...), message)
	object, err := fields.MarshalJSON() // not encode.AppendObject, which would link the encoder into every connector
	if err != nil {
		return err
	}
	if len(object) > len("{}") {
		b = append(append(b, `,"fields":`...), object...)
	}
	_, err = r.call(r.port.log, append(b, '}'))
	return err
}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	default:
		return "error"
	}
}

// A logHandler is a slog.Handler that writes to a run. A group becomes a prefix of names,
// with a dot.
type logHandler struct {
	run    *Run
	prefix string
	attrs  []slog.Attr // with prefixed names
}

// Enabled returns true for every level: the host decides what to keep.
func (*logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) Handle(_ context.Context, rec slog.Record) error {
	var fields logFields
	for _, a := range h.attrs {
		fields.add("", a)
	}
	rec.Attrs(func(a slog.Attr) bool {
		fields.add(h.prefix, a)
		return true
	})
	return h.run.logLine(rec.Level, rec.Message, &fields.record)
}

// WithAttrs returns a handler that adds attributes to every line.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	all := slices.Clone(h.attrs)
	for _, a := range attrs {
		a.Key = h.prefix + a.Key
		all = append(all, a)
	}
	return &logHandler{h.run, h.prefix, all}
}

// WithGroup returns a handler that puts name and a dot before later names.
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &logHandler{h.run, h.prefix + name + ".", h.attrs}
}

// logFields are the fields of one line. A repeated name is ignored.
type logFields struct {
	record Record
	names  []string
}

// add adds an attribute, or the attributes of a group. Values other than numbers and
// booleans become strings.
func (f *logFields) add(prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range v.Group() {
			f.add(prefix, inner)
		}
		return
	}
	if a.Key == "" {
		return
	}
	name := prefix + a.Key
	if slices.Contains(f.names, name) {
		return
	}
	f.names = append(f.names, name)
	switch v.Kind() {
	case slog.KindBool:
		f.record.Bool(name, v.Bool())
	case slog.KindInt64:
		f.record.Int(name, v.Int64())
	case slog.KindTime:
		f.record.Time(name, v.Time())
	default:
		f.record.String(name, v.String())
	}
}
