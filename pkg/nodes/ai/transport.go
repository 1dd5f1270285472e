package ai

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxAnswerBytes bounds what a model's server may answer, after decompression: the longest
// answers of models are far below it, and the client library reads all there is.
const maxAnswerBytes = 32 << 20

// answerTooLargeError is a model's answer beyond the limit.
type answerTooLargeError struct{ limit int64 }

func (e *answerTooLargeError) Error() string {
	return fmt.Sprintf("the model's server sent more than %d MiB", e.limit>>20)
}

// bounded is client with a limit to its answers, and for one server. A nil client is http.DefaultClient.
func bounded(client *http.Client) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	limited := *client
	limited.Transport = &boundedTransport{client.Transport, maxAnswerBytes}
	limited.CheckRedirect = sameServer
	return &limited
}

const maxRedirects = 5

// sameServer follows redirects within a server only: every request carries a key, in headers that
// net/http does not all know to be secret.
func sameServer(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case next.URL.Host != first.Host, next.URL.Scheme != first.Scheme && next.URL.Scheme != "https":
		return fmt.Errorf("the model's server redirects to %s://%s; set that as its base URL if the key is meant for it", next.URL.Scheme, next.URL.Host)
	case len(via) > maxRedirects:
		return errors.New("the model's server redirects without end")
	}
	return nil
}

type boundedTransport struct {
	base  http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	response, err := base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.ContentLength > t.limit {
		_ = response.Body.Close()
		return nil, &answerTooLargeError{t.limit}
	}
	response.Body = &boundedBody{response.Body, t.limit, t.limit}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	left, limit int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &answerTooLargeError{b.limit}
	}
	return n, err
}
