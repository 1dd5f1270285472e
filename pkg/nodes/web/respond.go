package web

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const (
	jsonType = "application/json; charset=utf-8"
	textType = "text/html; charset=utf-8" // as in n8n; the HTTP side keeps such pages apart
)

// Respond is the Respond to Webhook node: it answers the call that began the execution, and
// passes its items on. With enableResponseOutput its second output has the answer.
func Respond() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: base + "respondToWebhook", Versions: []float64{1, 1.1, 1.2, 1.3, 1.4, 1.5},
			Outputs: func(n *workflow.Node) int {
				if gjson.GetBytes(n.Parameters, "enableResponseOutput").Bool() {
					return 2
				}
				return 1
			},
		},
		Execute: respond,
	}
}

func respond(ctx context.Context, call *node.Call) (*node.Result, error) {
	items := call.Input(0)
	response, err := answerOf(ctx, call, items)
	if err != nil {
		return nil, err
	}
	r := &node.Result{Result: engine.Result{Outputs: []workflow.Items{passed(items)}, Response: response}}
	if gjson.GetBytes(call.Node.Parameters, "enableResponseOutput").Bool() {
		shown, err := json.Marshal(map[string]any{"headers": response.Headers, "statusCode": response.Status, "body": shownBody(response)})
		if err != nil {
			return nil, fmt.Errorf("show the answer: %w", err)
		}
		r.Outputs = append(r.Outputs, workflow.Items{{JSON: shown, PairedItem: workflow.Paired(0)}})
	}
	return r, nil
}

func shownBody(r *engine.WebhookResponse) any {
	if r.Headers["Content-Type"] == jsonType && json.Valid([]byte(r.Body)) {
		return json.RawMessage(r.Body)
	}
	return r.Body
}

// answerOf reads the answer from the node's parameters, for the first item.
func answerOf(ctx context.Context, call *node.Call, items workflow.Items) (*engine.WebhookResponse, error) {
	with, err := call.String(ctx, 0, "respondWith", "firstIncomingItem")
	if err != nil {
		return nil, err
	}
	fallback := http.StatusOK
	if with == "redirect" {
		fallback = http.StatusTemporaryRedirect
	}
	r := &engine.WebhookResponse{Headers: map[string]string{}}
	if r.Status, err = call.Int(ctx, 0, "options.responseCode", fallback); err != nil {
		return nil, err
	}
	if r.Status < 200 || r.Status > 599 {
		return nil, node.OperationError(0, fmt.Sprintf("%d is not a response code", r.Status), "HTTP response codes are 200 to 599.")
	}
	key, err := call.String(ctx, 0, "options.responseKey", "")
	if err != nil {
		return nil, err
	}
	kind := jsonType
	switch with {
	case "firstIncomingItem":
		if len(items) > 0 {
			r.Body = string(items[0].JSON)
		} else {
			r.Body = "{}"
		}
		r.Body = keyed(r.Body, key)
	case "allIncomingItems":
		all := make([]json.RawMessage, len(items))
		for i := range items {
			all[i] = items[i].JSON
		}
		r.Body = keyed(string(encode(all)), key)
	case "json":
		r.Body, err = jsonBody(ctx, call)
	case "text":
		kind = textType
		r.Body, err = call.String(ctx, 0, "responseBody", "")
	case "noData":
	case "redirect":
		var to string
		if to, err = call.String(ctx, 0, "redirectURL", ""); err == nil && (to == "" || strings.ContainsAny(to, "\r\n")) {
			err = node.OperationError(0, "The redirect URL is missing or no address", "Set the parameter redirectURL.")
		}
		r.Headers["Location"] = to
	case "binary":
		kind = ""
		r.Binary, err = binaryOf(ctx, call, items)
	case "jwt":
		r.Body, err = tokenBody(ctx, call)
	default:
		err = node.OperationError(-1, fmt.Sprintf("The kind of answer %q is not known", with), "")
	}
	if err != nil {
		return nil, err
	}
	if kind != "" {
		r.Headers["Content-Type"] = kind
	}
	return r, addHeaders(ctx, call, r)
}

// addHeaders adds those of the options. A header that could break the answer is refused.
func addHeaders(ctx context.Context, call *node.Call, r *engine.WebhookResponse) error {
	var entries []struct {
		Name  string `json:"name"`
		Value any    `json:"value"`
	}
	if err := call.ParamInto(ctx, 0, "options.responseHeaders.entries", &entries); err != nil {
		return err
	}
	for _, e := range entries {
		value := ""
		switch v := e.Value.(type) {
		case nil:
		case string:
			value = v
		default:
			value = string(encode(v))
		}
		if e.Name == "" || strings.ContainsAny(e.Name, " \t\r\n:") || strings.ContainsAny(value, "\r\n\x00") {
			return node.OperationError(0, fmt.Sprintf("The response header %q is not valid", e.Name),
				"A header's name holds letters, digits and hyphens, and its value is one line.")
		}
		r.Headers[http.CanonicalHeaderKey(e.Name)] = value
	}
	return nil
}

func keyed(body, key string) string {
	if key == "" {
		return body
	}
	return string(encode(map[string]json.RawMessage{key: json.RawMessage(body)}))
}

func encode(value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // JSON, and lists and maps of it
	return bytes.TrimSpace(b.Bytes())
}

// jsonBody is the parameter responseBody: JSON, or a text that holds it.
func jsonBody(ctx context.Context, call *node.Call) (string, error) {
	value, err := call.Param(ctx, 0, "responseBody")
	if err != nil {
		return "", err
	}
	if len(value) == 0 {
		return "{}", nil
	}
	text := []byte(value)
	if inner := gjson.ParseBytes(value); inner.Type == gjson.String {
		text = []byte(inner.Str)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return "", node.OperationError(-1, "Invalid JSON in 'Response Body' field", "Check that the syntax of the JSON in the 'Response Body' parameter is valid")
	}
	return compact.String(), nil
}

// binaryOf is the file of the first item that is to be sent: the only one, or the one that
// is named.
func binaryOf(ctx context.Context, call *node.Call, items workflow.Items) (*workflow.Binary, error) {
	if len(items) == 0 || len(items[0].Binary) == 0 {
		return nil, node.OperationError(0, "No binary data was found to return", "The first item has no file.")
	}
	source, err := call.String(ctx, 0, "responseDataSource", "automatically")
	if err != nil {
		return nil, err
	}
	if source == "set" {
		name, err := call.String(ctx, 0, "inputFieldName", "data")
		if err != nil {
			return nil, err
		}
		file, ok := items[0].Binary[name]
		if !ok {
			return nil, node.OperationError(0, fmt.Sprintf("The binary property %q does not exist", name), "")
		}
		return &file, nil
	}
	if file, ok := items[0].Binary["data"]; ok {
		return &file, nil
	}
	first := ""
	for name := range items[0].Binary {
		if first == "" || name < first {
			first = name
		}
	}
	file := items[0].Binary[first]
	return &file, nil
}

// tokenBody signs the payload with the credential.
func tokenBody(ctx context.Context, call *node.Call) (string, error) {
	value, err := call.Param(ctx, 0, "payload")
	if err != nil {
		return "", err
	}
	if inner := gjson.ParseBytes(value); inner.Type == gjson.String {
		value = json.RawMessage(inner.Str)
	}
	claims := jwt.MapClaims{}
	if err := json.Unmarshal(value, &claims); err != nil {
		return "", node.OperationError(0, "The payload of the token is no JSON object", "Check the parameter payload.")
	}
	ref, ok := call.Node.Credentials["jwtAuth"]
	if !ok || call.Credentials == nil {
		return "", node.OperationError(-1, "The credential that signs the token is missing", "Choose a credential of the type jwtAuth.")
	}
	data, err := call.Credentials(ctx, "jwtAuth", ref)
	if err != nil {
		return "", err
	}
	text := func(name string) string { s, _ := data[name].(string); return s }
	method := jwt.GetSigningMethod(text("algorithm"))
	if text("algorithm") == "" {
		method = jwt.SigningMethodHS256
	}
	if method == nil || method == jwt.SigningMethodNone {
		return "", node.OperationError(-1, "The algorithm of the credential that signs the token is not known", "")
	}
	key, err := signingKey(method, text("secret"), []byte(text("privateKey")))
	if err == nil {
		var token string
		if token, err = jwt.NewWithClaims(method, claims).SignedString(key); err == nil {
			return string(encode(map[string]string{"token": token})), nil
		}
	}
	return "", node.OperationError(-1, "The token cannot be signed", "The key of the credential does not fit its algorithm.")
}

func signingKey(method jwt.SigningMethod, secret string, pem []byte) (any, error) {
	switch method.(type) {
	case *jwt.SigningMethodRSA, *jwt.SigningMethodRSAPSS:
		return jwt.ParseRSAPrivateKeyFromPEM(pem)
	case *jwt.SigningMethodECDSA:
		return jwt.ParseECPrivateKeyFromPEM(pem)
	case *jwt.SigningMethodEd25519:
		key, err := jwt.ParseEdPrivateKeyFromPEM(pem)
		if private, ok := key.(ed25519.PrivateKey); ok {
			return private, nil
		}
		return key, err
	}
	if secret == "" {
		return nil, jwt.ErrInvalidKey
	}
	return []byte(secret), nil
}
