package http

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/url"
	"sync"
)

// response is a service's answer, read whole.
type response struct {
	status  int
	text    string // of the status: "Not Found"
	headers nethttp.Header
	body    []byte
	url     *url.URL // after redirects
}

// errOptionTimeout is the cause with which the timeout option ends a request.
var errOptionTimeout = errors.New("http: the request took longer than its timeout option")

// send makes one request. Its error is ctx.Err() when ctx has ended, else a
// *failure. Ending ctx closes the connection.
func (c Config) send(ctx context.Context, client *nethttp.Client, r *request, idempotencyKey string) (*response, error) {
	target, err := r.target()
	if err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeoutCause(ctx, r.options.timeout, errOptionTimeout)
	defer cancel()
	var payload io.Reader
	if len(r.body.bytes) > 0 {
		payload = bytes.NewReader(r.body.bytes)
	}
	req, err := nethttp.NewRequestWithContext(timed, r.method, target.String(), payload)
	if err != nil {
		return nil, operationError(fmt.Sprintf("the request cannot be made: %s", r.secrets.redact(err.Error())))
	}
	r.setHeaders(req, idempotencyKey)
	resp, err := r.client(client).Do(req)
	if err != nil {
		return nil, c.sendError(ctx, timed, r, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.MaxResponseBytes+1))
	if err != nil {
		return nil, c.sendError(ctx, timed, r, err)
	}
	if int64(len(data)) > c.MaxResponseBytes {
		return nil, tooLarge(c.MaxResponseBytes)
	}
	out := &response{status: resp.StatusCode, text: nethttp.StatusText(resp.StatusCode), headers: resp.Header, body: data, url: resp.Request.URL}
	if len(resp.Status) > 4 {
		out.text = resp.Status[4:]
	}
	return out, nil
}

func (c Config) sendError(ctx, timed context.Context, r *request, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(timed), errOptionTimeout):
		return timeoutFailure(r.options.timeout)
	}
	return transportFailure(err)
}

// client is the process's client with the redirect rules and the transport
// that this request asks for.
func (r *request) client(base *nethttp.Client) *nethttp.Client {
	client := nethttp.Client{}
	if base != nil {
		client = *base
	}
	client.Timeout = 0 // the request's context has it
	client.Transport = transportFor(client.Transport, r.options)
	client.CheckRedirect = func(next *nethttp.Request, via []*nethttp.Request) error {
		if !r.options.follow {
			return nethttp.ErrUseLastResponse
		}
		if len(via) > r.options.maxRedirects {
			return networkFailure("ERR_FR_TOO_MANY_REDIRECTS", "Maximum number of redirects exceeded", "Error").named("Maximum number of redirects exceeded")
		}
		if next.URL.Host != via[0].URL.Host {
			for name := range r.secrets.headers {
				next.Header.Del(name)
			}
		}
		return nil
	}
	return &client
}

func (f *failure) named(message string) *failure {
	f.node.Message = message
	return f
}

// transports keeps the changed copies of transports, since each has its own
// connections.
var transports sync.Map // transportKey -> *nethttp.Transport

type transportKey struct {
	base     *nethttp.Transport
	insecure bool
	proxy    string
}

func transportFor(base nethttp.RoundTripper, o options) nethttp.RoundTripper {
	if !o.insecure && o.proxy == "" {
		return base
	}
	if base == nil {
		base = nethttp.DefaultTransport
	}
	plain, ok := base.(*nethttp.Transport)
	if !ok { // a test's or a tracer's: it decides by itself
		return base
	}
	key := transportKey{plain, o.insecure, o.proxy}
	if t, ok := transports.Load(key); ok {
		return t.(*nethttp.Transport)
	}
	changed := plain.Clone()
	if o.insecure {
		if changed.TLSClientConfig == nil {
			changed.TLSClientConfig = &tls.Config{}
		}
		changed.TLSClientConfig.InsecureSkipVerify = true // the user's option, for this request only
	}
	if o.proxy != "" {
		if proxy, err := url.Parse(o.proxy); err == nil {
			changed.Proxy = nethttp.ProxyURL(proxy)
		}
	}
	t, _ := transports.LoadOrStore(key, changed)
	return t.(*nethttp.Transport)
}
