package text

import (
	"encoding/json"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// ParseBody makes JSON of an XML document that was sent to a webhook, in n8n's form: {root: …}, names in lower
// case, white space joined, attributes in "$".
func ParseBody(document string) (json.RawMessage, error) {
	r := &reader{attributeKey: "$", textKey: "_", normalize: true, normalizeTags: true}
	name, value, err := r.read(document)
	if err != nil {
		return nil, err
	}
	var object jsonobject.Object
	object.Set(name, value)
	return object.JSON(), nil
}
