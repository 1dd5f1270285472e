package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reprise-engine/reprise/pkg/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client keeps no connections, which goleak would find.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func TestServe(t *testing.T) {
	f := newFixture(t)
	stop, address, err := Serve(t.Context(), "127.0.0.1:0", f.handler, nil)
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, address)
	answer, err := client.Get(address + f.approvalPath(t))
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(body), "Send the money?")

	_, _, err = Serve(t.Context(), strings.TrimPrefix(address, "http://"), f.handler, nil)
	require.ErrorContains(t, err, "listen for HTTP on 127.0.0.1:")

	stop(t.Context())
	stop(t.Context())
	_, err = client.Get(address)
	require.Error(t, err)
}

func TestReachable(t *testing.T) {
	stop, address, err := Serve(t.Context(), ":0", http.NotFoundHandler(), nil)
	require.NoError(t, err)
	defer stop(t.Context())
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, address)
}

// stop lets a call end that is in work, for as long as it may.
func TestStop(t *testing.T) {
	for name, patient := range map[string]bool{"patient": true, "impatient": false} {
		t.Run(name, func(t *testing.T) {
			begun, finish := make(chan struct{}), make(chan struct{})
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(begun)
				select {
				case <-finish:
					_, _ = io.WriteString(w, "done")
				case <-r.Context().Done():
				}
			})
			stop, address, err := Serve(t.Context(), "127.0.0.1:0", h, nil)
			require.NoError(t, err)
			got := make(chan string, 1)
			go func() {
				answer, err := client.Get(address)
				if err != nil {
					got <- "broken off"
					return
				}
				body, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				got <- string(body)
			}()
			<-begun
			within, cancel := context.WithCancel(t.Context())
			defer cancel()
			stopped := make(chan struct{})
			go func() { stop(within); close(stopped) }()
			if patient {
				close(finish)
				require.Equal(t, "done", <-got)
			} else {
				cancel()
				require.Equal(t, "broken off", <-got)
			}
			<-stopped
		})
	}
}

// A resume call whose caller has gone away ends, though the execution goes on.
func TestCallerGoesAway(t *testing.T) {
	f := newFixture(t)
	asked, ended := make(chan struct{}), make(chan struct{})
	f.resume = func(queue.ResumeRequest) (*queue.ResumeAnswer, error) {
		close(asked)
		return &queue.ResumeAnswer{AfterEnd: true}, nil
	}
	f.waitFinished = func(ctx context.Context) (*queue.Execution, error) {
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	stop, address, err := Serve(t.Context(), "127.0.0.1:0", f.handler, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+f.resumePath(t, 1), nil)
	require.NoError(t, err)
	_, err = client.Do(r)
	require.ErrorIs(t, err, context.Canceled)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the wait for the execution's end goes on")
	}
	stop(t.Context())
}
