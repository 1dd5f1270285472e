package expression

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
)

// Resolve evaluates every expression in a parameter tree: every string value
// that starts with "=". undefined gives nil at the top, is left out inside
// objects and is null inside lists. A tree without expressions is returned as
// it is; keys keep their order.
func (e *Evaluator) Resolve(ctx context.Context, s *Scope, item int, raw json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(raw, []byte(`"=`)) {
		return raw, nil
	}
	var out bytes.Buffer
	r := resolver{evaluator: e, ctx: ctx, scope: s, item: item}
	present, err := r.write(&out, raw)
	if err != nil || !present {
		return nil, err
	}
	return out.Bytes(), nil
}

type resolver struct {
	evaluator *Evaluator
	ctx       context.Context //nolint:containedctx // lives as long as one call of Resolve
	scope     *Scope
	item      int
}

// write appends a value with its expressions evaluated; present is false when
// it is undefined.
func (r *resolver) write(out *bytes.Buffer, raw []byte) (present bool, err error) {
	raw = raw[skipSpace(raw, 0):]
	if len(raw) == 0 {
		return false, nil
	}
	switch {
	case raw[0] == '{' && bytes.Contains(raw, []byte(`"=`)):
		out.WriteByte('{')
		first := true
		members(raw, func(key, value []byte) bool {
			mark := out.Len()
			if !first {
				out.WriteByte(',')
			}
			out.Write(key)
			out.WriteByte(':')
			var has bool
			if has, err = r.write(out, value); err != nil {
				return false
			}
			if !has {
				out.Truncate(mark)
				return true
			}
			first = false
			return true
		})
		out.WriteByte('}')
		return true, err
	case raw[0] == '[' && bytes.Contains(raw, []byte(`"=`)):
		out.WriteByte('[')
		first := true
		elements(raw, func(value []byte) bool {
			if !first {
				out.WriteByte(',')
			}
			first = false
			var has bool
			if has, err = r.write(out, value); err != nil {
				return false
			}
			if !has {
				out.WriteString("null")
			}
			return true
		})
		out.WriteByte(']')
		return true, err
	case raw[0] == '"' && len(raw) > 1 && raw[1] == '=':
		v, err := r.evaluator.Evaluate(r.ctx, r.scope, r.item, decodeString(bytes.TrimSpace(raw)))
		if err != nil || v.JSON == nil {
			return false, err
		}
		out.Write(v.JSON)
		return true, nil
	}
	out.Write(raw)
	return true, nil
}

// Simple reports whether every expression in a parameter tree is on the fast
// path, so that it is evaluated without JavaScript. (A fast path that meets a
// method of JavaScript on its way, as in $json.name.trim without a call, still
// needs it.)
func Simple(raw json.RawMessage) bool {
	simple := true
	eachText(raw, func(text string) {
		if simple && strings.HasPrefix(text, "=") {
			p := compiled.get(text[1:])
			simple = p.fast || p.err != nil
		}
	})
	return simple
}
