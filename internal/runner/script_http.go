package runner

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/expression"
)

// maxScriptResponseBytes is the greatest answer that is handed to a script.
const maxScriptResponseBytes = 32 << 20

// scriptOptions are the options of this.helpers.httpRequest, of which payload is what
// helpers.js made of body.
type scriptOptions struct {
	URL         string          `json:"url"`
	BaseURL     string          `json:"baseURL"`
	Method      string          `json:"method"`
	Headers     map[string]any  `json:"headers"`
	QS          json.RawMessage `json:"qs"`
	ArrayFormat string          `json:"arrayFormat"`
	JSON        bool            `json:"json"`
	Encoding    string          `json:"encoding"`
	Timeout     float64         `json:"timeout"` // milliseconds
	Auth        *struct {
		Username string `json:"username"`
		Password string `json:"password"`
	} `json:"auth"`
	DisableFollowRedirect        bool `json:"disableFollowRedirect"`
	IgnoreHTTPStatusErrors       bool `json:"ignoreHttpStatusErrors"`
	SkipSSLCertificateValidation bool `json:"skipSslCertificateValidation"`
	ReturnFullResponse           bool `json:"returnFullResponse"`
	Payload                      *struct {
		JSON  json.RawMessage `json:"json"`
		Text  *string         `json:"text"`
		Bytes *string         `json:"bytes"`
		Type  string          `json:"type"`
	} `json:"payload"`
}

// scriptResponse is what helpers.js is answered: Bytes is base64.
type scriptResponse struct {
	Body       json.RawMessage   `json:"body,omitempty"`
	Bytes      *string           `json:"bytes,omitempty"`
	Headers    map[string]string `json:"headers"`
	Status     int               `json:"statusCode"`
	StatusText string            `json:"statusMessage"`
}

// scriptRequest makes a script's HTTP request with the client of the nodes, so that what
// they cannot reach it cannot reach either.
func scriptRequest(ctx context.Context, client *http.Client, arg json.RawMessage) (json.RawMessage, error) {
	var o scriptOptions
	if err := json.Unmarshal(arg, &o); err != nil {
		return nil, fmt.Errorf("the options of the request cannot be read: %w", err)
	}
	if o.SkipSSLCertificateValidation {
		return nil, errors.New("skipSslCertificateValidation is not available to scripts; use an HTTP Request node")
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.Timeout*float64(time.Millisecond)))
		defer cancel()
	}
	request, err := o.request(ctx)
	if err != nil {
		return nil, err
	}
	own := *client
	if o.DisableFollowRedirect {
		own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	response, err := own.Do(request)
	if err != nil {
		return nil, requestError(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxScriptResponseBytes+1))
	if err != nil {
		return nil, requestError(err)
	}
	if len(body) > maxScriptResponseBytes {
		return nil, fmt.Errorf("the answer has more than the %d bytes that a script can take; use an HTTP Request node", maxScriptResponseBytes)
	}
	answer := o.answer(response, body)
	if (response.StatusCode < 200 || response.StatusCode > 299) && !o.IgnoreHTTPStatusErrors && !(o.DisableFollowRedirect && response.StatusCode < 400) {
		return nil, statusError(answer)
	}
	return json.Marshal(answer)
}

func (o *scriptOptions) request(ctx context.Context) (*http.Request, error) {
	target := o.URL
	if o.BaseURL != "" && !strings.Contains(target, "://") {
		target = strings.TrimRight(o.BaseURL, "/") + "/" + strings.TrimLeft(target, "/")
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &expression.CallError{Name: "TypeError", Message: "Invalid URL", Fields: map[string]any{"code": "ERR_INVALID_URL", "input": target}}
	}
	if query := encodeQuery(o.QS, o.ArrayFormat); query != "" {
		u.RawQuery = strings.TrimLeft(u.RawQuery+"&"+query, "&")
	}
	body, contentType, err := o.body()
	if err != nil {
		return nil, err
	}
	method := strings.ToUpper(o.Method)
	if method == "" {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json,text/html,application/xhtml+xml,application/xml,text/*;q=0.9, image/*;q=0.8, */*;q=0.7")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	for name, value := range o.Headers {
		switch value := value.(type) {
		case nil:
		case []any:
			for _, v := range value {
				request.Header.Add(name, fmt.Sprint(v))
			}
		case float64:
			request.Header.Set(name, strconv.FormatFloat(value, 'f', -1, 64))
		default:
			request.Header.Set(name, fmt.Sprint(value))
		}
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
		request.Header.Del("Host")
	}
	if o.Auth != nil {
		request.SetBasicAuth(o.Auth.Username, o.Auth.Password)
	}
	return request, nil
}

func (o *scriptOptions) body() (_ io.Reader, contentType string, _ error) {
	p := o.Payload
	switch {
	case p == nil:
		return nil, "", nil
	case p.Bytes != nil:
		data, err := base64.StdEncoding.DecodeString(*p.Bytes)
		return bytes.NewReader(data), "", err
	case p.Text != nil:
		return strings.NewReader(*p.Text), p.Type, nil
	}
	for name, value := range o.Headers {
		if strings.EqualFold(name, "content-type") && strings.Contains(strings.ToLower(fmt.Sprint(value)), "x-www-form-urlencoded") {
			return strings.NewReader(encodeQuery(p.JSON, "")), "", nil
		}
	}
	return bytes.NewReader(p.JSON), "application/json", nil
}

// encodeQuery writes the fields of an object as a query; lists repeat their name, with
// brackets unless the format says otherwise.
func encodeQuery(raw json.RawMessage, arrayFormat string) string {
	value := gjson.ParseBytes(raw)
	if value.Type == gjson.String {
		return strings.TrimPrefix(value.Str, "?")
	}
	var parts []string
	add := func(name string, value gjson.Result) {
		text := value.String()
		if value.Type == gjson.JSON {
			text = value.Raw
		}
		parts = append(parts, url.QueryEscape(name)+"="+url.QueryEscape(text))
	}
	value.ForEach(func(key, value gjson.Result) bool {
		if value.Type == gjson.Null {
			return true
		}
		if !value.IsArray() {
			add(key.Str, value)
			return true
		}
		for i, element := range value.Array() {
			switch arrayFormat {
			case "repeat":
				add(key.Str, element)
			case "indices":
				add(fmt.Sprintf("%s[%d]", key.Str, i), element)
			default:
				add(key.Str+"[]", element)
			}
		}
		return true
	})
	return strings.Join(parts, "&")
}

func (o *scriptOptions) answer(response *http.Response, body []byte) *scriptResponse {
	a := &scriptResponse{Headers: map[string]string{}, Status: response.StatusCode}
	a.StatusText = strings.TrimSpace(strings.TrimPrefix(response.Status, strconv.Itoa(response.StatusCode)))
	for name, values := range response.Header {
		a.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	switch {
	case o.Encoding == "arraybuffer" || o.Encoding == "stream":
		encoded := base64.StdEncoding.EncodeToString(body)
		a.Bytes = &encoded
	case o.Encoding != "text" && json.Valid(body):
		a.Body = body
	case utf8.Valid(body):
		a.Body, _ = json.Marshal(string(body)) // a text always encodes
	default:
		a.Body, _ = json.Marshal(strings.ToValidUTF8(string(body), "\uFFFD"))
	}
	return a
}

// statusError is what a script catches when a server refuses: what its authors look at is
// the message, httpCode, statusCode and response.
func statusError(a *scriptResponse) error {
	response := map[string]any{"status": a.Status, "statusText": a.StatusText, "headers": a.Headers}
	if a.Body != nil {
		response["data"] = a.Body
	}
	return &expression.CallError{
		Name: "AxiosError", Message: fmt.Sprintf("Request failed with status code %d", a.Status),
		Fields: map[string]any{"httpCode": strconv.Itoa(a.Status), "status": a.Status, "statusCode": a.Status, "response": response},
	}
}

// requestError leaves out the method and URL that net/http puts before every error: the
// URL may hold a secret.
func requestError(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &expression.CallError{Message: "timeout exceeded", Fields: map[string]any{"code": "ECONNABORTED"}}
	}
	return &expression.CallError{Message: err.Error()}
}
