package ai

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const defaultBaseURL = "https://api.openai.com/v1"

// openAI is a chat model behind OpenAI's API, or a server that speaks it.
type openAI struct {
	client    *openai.Client
	model     string
	server    string // host and port, for those who observe
	responses bool   // the Responses API in place of chat completions
	settings  openAISettings
	requests  []option.RequestOption
	secrets   []string
}

// openAISettings are the options that become part of the request; nil is the
// server's default.
type openAISettings struct {
	temperature, topP, frequencyPenalty, presencePenalty *float64
	maxTokens                                            int // 0: no limit
	format                                               string
	effort                                               string
}

func openOpenAI(ctx context.Context, call *node.Call, item int) (chatModel, error) {
	m := &openAI{}
	var err error
	if m.model, err = openAIModelName(ctx, call, item); err != nil {
		return nil, err
	}
	// The switch appeared in 1.3, on unless it is switched off.
	if call.Node.TypeVersion >= 1.3 {
		if m.responses, err = flag(ctx, call, item, "responsesApiEnabled", true); err != nil {
			return nil, err
		}
	}
	if err := m.readSettings(ctx, call, item); err != nil {
		return nil, err
	}
	if err := m.connect(ctx, call, item); err != nil {
		return nil, err
	}
	return m, nil
}

func openAIModelName(ctx context.Context, call *node.Call, item int) (string, error) {
	value, err := param(ctx, call, item, "model")
	if err != nil {
		return "", err
	}
	if value.IsObject() {
		value = value.Get("value")
	}
	if name := value.String(); name != "" {
		return name, nil
	}
	if value.Exists() || call.Node.TypeVersion >= 1.2 {
		return "gpt-5-mini", nil
	}
	return "gpt-4o-mini", nil
}

func (m *openAI) readSettings(ctx context.Context, call *node.Call, item int) error {
	for _, setting := range []struct {
		path string
		into **float64
	}{
		{"options.temperature", &m.settings.temperature},
		{"options.topP", &m.settings.topP},
		{"options.frequencyPenalty", &m.settings.frequencyPenalty},
		{"options.presencePenalty", &m.settings.presencePenalty},
	} {
		value, ok, err := number(ctx, call, item, setting.path)
		if err != nil {
			return err
		}
		if ok {
			*setting.into = &value
		}
	}
	limit, _, err := number(ctx, call, item, "options.maxTokens")
	if err != nil {
		return err
	}
	m.settings.maxTokens = max(0, int(limit)) // -1 is n8n's "no limit"
	if m.settings.format, err = text(ctx, call, item, "options.responseFormat", ""); err != nil {
		return err
	}
	if m.settings.format == "" {
		if m.settings.format, err = text(ctx, call, item, "options.textFormat.textOptions.type", ""); err != nil {
			return err
		}
	}
	if m.settings.effort, err = text(ctx, call, item, "options.reasoningEffort", ""); err != nil {
		return err
	}
	timeout, ok, err := number(ctx, call, item, "options.timeout")
	if err != nil {
		return err
	}
	if !ok || timeout <= 0 {
		timeout = 60000
	}
	retries, ok, err := number(ctx, call, item, "options.maxRetries")
	if err != nil {
		return err
	}
	if !ok {
		retries = 2
	}
	m.requests = []option.RequestOption{
		option.WithRequestTimeout(time.Duration(timeout) * time.Millisecond),
		option.WithMaxRetries(max(0, int(retries))),
	}
	return nil
}

// connect reads the credential and finds the client for it.
func (m *openAI) connect(ctx context.Context, call *node.Call, item int) error {
	ref, ok := call.Node.Credentials["openAiApi"]
	if !ok {
		return operationError("Node does not have any credentials set", "Choose an OpenAI credential in "+call.Node.Name+".")
	}
	secret, err := credentials(ctx, call, "openAiApi", ref)
	if err != nil {
		return err
	}
	field := func(name string) string { s, _ := secret[name].(string); return s }
	k := clientKey{http: call.HTTP, base: field("url"), apiKey: field("apiKey"), organization: field("organizationId")}
	if on, _ := secret["header"].(bool); on {
		k.headerName, k.headerValue = field("headerName"), field("headerValue")
	}
	base, err := text(ctx, call, item, "options.baseURL", "")
	if err != nil {
		return err
	}
	if base != "" {
		k.base = base
	}
	if k.base == "" {
		k.base = defaultBaseURL
	}
	if !strings.HasPrefix(k.base, "http://") && !strings.HasPrefix(k.base, "https://") {
		return operationError("Invalid base URL of the model", "It must start with http:// or https://.")
	}
	m.client = openAIClient(k)
	m.server = serverOf(k.base)
	for _, s := range []string{k.apiKey, k.headerValue} {
		if len(s) > 3 {
			m.secrets = append(m.secrets, s)
		}
	}
	return nil
}

func credentials(ctx context.Context, call *node.Call, kind string, ref workflow.CredentialRef) (map[string]any, error) {
	if call.Credentials == nil {
		return nil, operationError("Credentials are not available in this process", "Models run on workers.")
	}
	return call.Credentials(ctx, kind, ref)
}

// clientKey tells clients apart; what differs per request is no part of it.
type clientKey struct {
	http                                                *http.Client
	base, apiKey, organization, headerName, headerValue string
}

var (
	clientsMu sync.Mutex
	clients   = map[clientKey]*openai.Client{}
)

// maxClients bounds the cache; a worker rarely sees more credentials than this.
const maxClients = 256

// openAIClient returns the client for a server and key, one for all calls. It
// is put together here because openai.NewClient would read keys from the
// process's environment.
func openAIClient(k clientKey) *openai.Client {
	clientsMu.Lock()
	defer clientsMu.Unlock()
	if c, ok := clients[k]; ok {
		return c
	}
	if len(clients) >= maxClients {
		clear(clients)
	}
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimRight(k.base, "/") + "/"),
		option.WithHTTPClient(bounded(k.http)),
		option.WithAPIKey(k.apiKey),
	}
	if k.organization != "" {
		options = append(options, option.WithOrganization(k.organization))
	}
	if k.headerName != "" {
		options = append(options, option.WithHeader(k.headerName, k.headerValue))
	}
	c := &openai.Client{Options: options} // large: it has all of the API's services in it
	clients[k] = c
	return c
}

func (m *openAI) ask(ctx context.Context, q question) (*reply, error) {
	path, body, read := "chat/completions", m.chatRequest(q), readChat
	if m.responses {
		path, body, read = "responses", m.responsesRequest(q), readResponse
	}
	options := m.requests
	if q.IdempotencyKey != "" {
		options = append(options[:len(options):len(options)], option.WithHeader("Idempotency-Key", q.IdempotencyKey))
	}
	var answer []byte
	if err := m.client.Post(ctx, path, body, &answer, options...); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, m.failure(err)
	}
	r, err := read(answer)
	if err != nil {
		return nil, m.failure(err)
	}
	return r, nil
}
