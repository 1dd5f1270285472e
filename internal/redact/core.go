package redact

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Core is a log core that takes secrets out of messages and fields before they reach another core.
func Core(core zapcore.Core, s *Set) zapcore.Core { return &logCore{core, s} }

// Logger is a logger that takes secrets out.
func Logger(log *zap.Logger, s *Set) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return Core(c, s) }))
}

type logCore struct {
	zapcore.Core
	secrets *Set
}

// With implements zapcore.Core.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{c.Core.With(c.clean(fields)), c.secrets}
}

// Check implements zapcore.Core.
func (c *logCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core.
func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	e.Message, e.Stack = c.secrets.String(e.Message), c.secrets.String(e.Stack)
	return c.Core.Write(e, c.clean(fields))
}

// clean is fields without secrets; a field that holds none stays what it is.
func (c *logCore) clean(fields []zapcore.Field) []zapcore.Field {
	if c.secrets.Empty() {
		return fields
	}
	var changed []zapcore.Field
	for i := range fields {
		text, ok := textOf(&fields[i])
		if !ok {
			continue
		}
		if clean := c.secrets.String(text); clean != text {
			if changed == nil {
				changed = append(changed, fields...)
			}
			changed[i] = zap.String(fields[i].Key, clean)
		}
	}
	if changed == nil {
		return fields
	}
	return changed
}

// textOf is what a field shows, when it can show a secret.
func textOf(f *zapcore.Field) (string, bool) {
	switch f.Type {
	case zapcore.StringType:
		return f.String, true
	case zapcore.ErrorType:
		if err, ok := f.Interface.(error); ok && err != nil {
			return fmt.Sprintf("%+v", err), true
		}
	case zapcore.ByteStringType, zapcore.BinaryType:
		if b, ok := f.Interface.([]byte); ok {
			return string(b), true
		}
	case zapcore.StringerType, zapcore.ReflectType, zapcore.ArrayMarshalerType, zapcore.ObjectMarshalerType, zapcore.InlineMarshalerType:
		return fmt.Sprintf("%+v", f.Interface), true
	}
	return "", false
}
