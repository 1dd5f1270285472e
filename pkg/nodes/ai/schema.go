package ai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	xtext "golang.org/x/text/message"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// schemaCache keeps compiled schemas by their text; the zero value is empty. It
// may be shared by goroutines.
type schemaCache struct {
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

var schemas schemaCache

// maxSchemas bounds the cache. Schemas that hold expressions may differ with
// every item.
const maxSchemas = 1024

func (c *schemaCache) get(raw json.RawMessage) (*jsonschema.Schema, error) {
	c.mu.Lock()
	found := c.compiled[string(raw)]
	c.mu.Unlock()
	if found != nil {
		return found, nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft7)
	// Schemas are the workflow author's: references to files or hosts stay unread.
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource("schema.json", document); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiled == nil || len(c.compiled) >= maxSchemas {
		c.compiled = make(map[string]*jsonschema.Schema)
	}
	c.compiled[string(raw)] = schema
	return schema, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %s, which is not read", url)
}

// violations says in one sentence how value breaks a schema, naming the
// arguments; "" when it fits. err tells that the schema itself is broken.
func violations(schema, value json.RawMessage) (problem string, err error) {
	compiled, err := schemas.get(schema)
	if err != nil {
		return "", err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err.Error(), nil
	}
	var invalid *jsonschema.ValidationError
	switch err := compiled.Validate(instance); {
	case err == nil:
		return "", nil
	case !errors.As(err, &invalid):
		return err.Error(), nil
	}
	var found []string
	collect(invalid, &found)
	return strings.Join(found, "; "), nil
}

// maxViolations is how many a message lists.
const maxViolations = 5

func collect(e *jsonschema.ValidationError, found *[]string) {
	for _, cause := range e.Causes {
		collect(cause, found)
	}
	if len(e.Causes) > 0 || len(*found) >= maxViolations {
		return
	}
	at := strings.Join(e.InstanceLocation, ".")
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			*found = append(*found, jsonobject.Quote(joined(at, name))+" is missing")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			*found = append(*found, jsonobject.Quote(joined(at, name))+" is not an argument of it")
		}
	case *kind.Type:
		*found = append(*found, fmt.Sprintf("%s must be %s, not %s", where(at), strings.Join(k.Want, " or "), k.Got))
	default:
		*found = append(*found, where(at)+": "+e.ErrorKind.LocalizedString(printer))
	}
}

var printer = xtext.NewPrinter(language.English)

func where(at string) string {
	if at == "" {
		return "the value"
	}
	return jsonobject.Quote(at)
}

func joined(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
