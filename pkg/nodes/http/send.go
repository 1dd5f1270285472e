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
	"slices"
	"sync"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// response is a service's answer, read whole, or kept as a file.
type response struct {
	status  int
	text    string // of the status: "Not Found"
	headers nethttp.Header
	body    []byte
	file    workflow.Binary // instead of body, when isFile
	isFile  bool
	empty   bool     // there is no body
	url     *url.URL // after redirects
	asked   string   // the host before them
}

// errOptionTimeout is the cause with which the timeout option ends a request.
var errOptionTimeout = errors.New("http: the request took longer than its timeout option")

// send makes a request, and once more when the service refuses it and the credential has an answer
// to that: a digest, or another token. Its error is ctx.Err() when ctx has ended, else a *failure.
func (x *execution) send(ctx context.Context, r *request, idempotencyKey string) (*response, error) {
	if r.secrets.digest == nil && r.secrets.renew == nil {
		return x.attempt(ctx, r, idempotencyKey)
	}
	first := *r
	first.mayRefuse = true
	resp, err := x.attempt(ctx, &first, idempotencyKey)
	if err != nil || resp.status != nethttp.StatusUnauthorized {
		return resp, err
	}
	again, err := r.answer(ctx, resp)
	switch {
	case err != nil:
		return nil, err
	case again != nil:
		return x.attempt(ctx, again, idempotencyKey)
	case r.options.neverError && resp.kind(r.options.format) == "file":
		resp.isFile = true
		return resp, x.keep(ctx, resp, bytes.NewReader(resp.body))
	}
	return resp, nil
}

// answer is the request that follows a refused one; nil when there is none.
func (r *request) answer(ctx context.Context, refused *response) (*request, error) {
	again := *r
	if r.secrets.digest != nil {
		value, err := r.secrets.digest.Answer(refused.headers, r.method, refused.url.RequestURI())
		if err != nil || refused.url.Host != refused.asked {
			return nil, nil //nolint:nilerr // the refusal is what the node fails with
		}
		again.secrets.headers = map[string]string{"Authorization": value}
		return &again, nil
	}
	fresh, err := r.secrets.renew(ctx)
	if err != nil {
		return nil, err
	}
	if fresh.token == r.secrets.token {
		return nil, nil
	}
	again.secrets.headers = fresh.headers
	again.secrets.hidden = append(slices.Clone(r.secrets.hidden), fresh.hidden...)
	r.secrets.hidden = again.secrets.hidden // an error of this request shows neither
	return &again, nil
}

// attempt makes one request. Ending ctx closes the connection.
func (x *execution) attempt(ctx context.Context, r *request, idempotencyKey string) (*response, error) {
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
	var stream *upload
	if r.body.parts != nil {
		if stream, err = x.upload(timed, r.body); err != nil {
			return nil, err
		}
		payload = stream
	}
	req, err := nethttp.NewRequestWithContext(timed, r.method, target.String(), payload)
	if err != nil {
		return nil, operationError(fmt.Sprintf("the request cannot be made: %s", r.secrets.redact(err.Error())))
	}
	r.setHeaders(req, idempotencyKey)
	if stream != nil {
		stream.attach(req)
	}
	if r.secrets.sign != nil {
		if stream != nil {
			return nil, operationError("a file that is not held in memory cannot be signed; send it without this credential")
		}
		if err := r.secrets.sign(req, r.body.bytes, x.call.Now()); err != nil {
			return nil, operationError(err.Error())
		}
	}
	resp, err := r.client(x.call.HTTP).Do(req)
	if err != nil {
		if stream != nil && stream.failed() != nil && ctx.Err() == nil {
			return nil, operationError(stream.failed().Error())
		}
		return nil, sendError(ctx, timed, r, err)
	}
	defer resp.Body.Close()
	out := &response{status: resp.StatusCode, text: nethttp.StatusText(resp.StatusCode), headers: resp.Header, url: resp.Request.URL, asked: target.Host}
	if err := x.receive(timed, r, resp, out); err != nil {
		return nil, sendError(ctx, timed, r, err)
	}
	if len(resp.Status) > 4 {
		out.text = resp.Status[4:]
	}
	return out, nil
}

// receive reads the body of an answer, or keeps it as a file when that is what it is.
func (x *execution) receive(ctx context.Context, r *request, resp *nethttp.Response, out *response) (err error) {
	var body io.Reader = resp.Body
	if resp.ContentLength <= 0 { // whether there is a body is only known when it is read
		var first [1]byte
		n, err := io.ReadFull(resp.Body, first[:])
		if err != nil && err != io.EOF { //nolint:errorlint // ReadFull returns it as it is
			return err
		}
		out.empty = n == 0
		body = io.MultiReader(bytes.NewReader(first[:n]), resp.Body)
	}
	fails := !r.options.neverError && (out.status < 200 || out.status > 299) || r.mayRefuse && out.status == nethttp.StatusUnauthorized
	if out.isFile = !fails && out.kind(r.options.format) == "file"; out.isFile {
		if !x.call.Files.Stored() { // it will be held in memory like any answer
			if resp.ContentLength > x.MaxResponseBytes {
				return tooLarge(x.MaxResponseBytes)
			}
			body = &limited{x: x, r: body}
		}
		return x.keep(ctx, out, body)
	}
	out.body, err = x.readBody(resp.ContentLength, body)
	return err
}

// limited counts what is read among the answers of the run.
type limited struct {
	x *execution
	r io.Reader
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.x.received.Add(int64(n)) > l.x.MaxResponseBytes {
		return n, tooLarge(l.x.MaxResponseBytes)
	}
	return n, err
}

func sendError(ctx, timed context.Context, r *request, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(timed), errOptionTimeout):
		return timeoutFailure(r.options.timeout)
	}
	return transportFailure(err)
}

// firstRead is what is read of a body whose length is not told before its memory grows.
const firstRead = 8 << 10

// readBody reads an answer, after decompression. All answers of the run share one limit:
// they are held at once, and their number is as much the workflow's choice as their size.
// What is read is counted while it arrives, so that many endless answers together end
// where one would.
func (x *execution) readBody(length int64, body io.Reader) ([]byte, error) {
	size := int64(firstRead)
	if length > 0 {
		if length > x.MaxResponseBytes {
			return nil, tooLarge(x.MaxResponseBytes)
		}
		size = min(length+1, 1<<20) // a server may promise more than it sends
	}
	data := make([]byte, 0, size)
	for {
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if x.received.Add(int64(n)) > x.MaxResponseBytes {
			return nil, tooLarge(x.MaxResponseBytes)
		}
		switch {
		case err == io.EOF: //nolint:errorlint // Read returns it as it is
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = slices.Grow(data, int(min(int64(len(data)), x.MaxResponseBytes+1-int64(len(data)))))
		}
	}
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
	client.CheckRedirect = r.redirect
	return &client
}

// redirect decides about the next request of a chain, and takes from it what only the first
// server may know: what a credential added. net/http itself does so for some headers.
func (r *request) redirect(next *nethttp.Request, via []*nethttp.Request) error {
	if !r.options.follow {
		return nethttp.ErrUseLastResponse
	}
	if len(via) > r.options.maxRedirects {
		return networkFailure("ERR_FR_TOO_MANY_REDIRECTS", "Maximum number of redirects exceeded", "Error").named("Maximum number of redirects exceeded")
	}
	first := via[0].URL
	if next.URL.Host == first.Host && (next.URL.Scheme == first.Scheme || next.URL.Scheme == "https") {
		return nil
	}
	if r.options.certificate != nil {
		return operationError("The service redirects to " + next.URL.Host + ", which would be shown the client certificate; call it itself if it may see that")
	}
	for name := range r.secrets.headers {
		next.Header.Del(name)
	}
	if r.secrets.sign != nil {
		next.Header.Del("Authorization")
		next.Header.Del("X-Amz-Security-Token")
	}
	next.Header.Del("Referer") // the URL before this one, with its query
	if r.secrets.body.Len() > 0 && next.Body != nil && next.Body != nethttp.NoBody {
		return operationError("The service redirects to " + next.URL.Host + ", which would be sent the credential in the request's body")
	}
	return nil
}

func (f *failure) named(message string) *failure {
	f.node.Message = message
	return f
}

// transports keeps the changed copies of transports, since each has its own
// connections. Proxies may come from expressions, so their number is bounded.
var transports = struct {
	sync.Mutex
	of map[transportKey]*nethttp.Transport
}{of: map[transportKey]*nethttp.Transport{}}

const maxTransports = 64

type transportKey struct {
	base        *nethttp.Transport
	insecure    bool
	proxy       string
	certificate string // its digest
}

func transportFor(base nethttp.RoundTripper, o options) nethttp.RoundTripper {
	if !o.insecure && o.proxy == "" && o.certificate == nil {
		return base
	}
	if base == nil {
		base = nethttp.DefaultTransport
	}
	plain, ok := base.(*nethttp.Transport)
	if !ok { // a test's or a tracer's: it decides by itself
		return base
	}
	key := transportKey{base: plain, insecure: o.insecure, proxy: o.proxy}
	if o.certificate != nil {
		key.certificate = o.certificate.digest
	}
	transports.Lock()
	defer transports.Unlock()
	if t, ok := transports.of[key]; ok {
		return t
	}
	if len(transports.of) >= maxTransports {
		for _, t := range transports.of {
			t.CloseIdleConnections() // requests under way keep theirs
		}
		clear(transports.of)
	}
	t := changed(plain, o)
	transports.of[key] = t
	return t
}

// changed is a copy of a transport for a request's options. The rules of the process
// about addresses are in DialContext and Proxy, and stay.
func changed(plain *nethttp.Transport, o options) *nethttp.Transport {
	t := plain.Clone()
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	o.certificate.present(t.TLSClientConfig)
	if o.insecure {
		t.TLSClientConfig.InsecureSkipVerify = true // the user's option, for this request only
	}
	proxy, err := url.Parse(o.proxy)
	if o.proxy == "" || err != nil {
		return t
	}
	t.Proxy = func(r *nethttp.Request) (*url.URL, error) {
		if plain.Proxy != nil {
			if _, err := plain.Proxy(r); err != nil {
				return nil, err
			}
		}
		return proxy, nil
	}
	return t
}
