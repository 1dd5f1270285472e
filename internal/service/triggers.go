package service

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/callers"
	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/egress"
	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/internal/trigger"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// maxStreams is how many idle connections to the servers of SSE triggers are kept; each open
// stream has one of its own.
const maxStreams = 8

// triggerHost makes what hosts the triggers of active workflows, not started.
func triggerHost(s Coordinator, conn *queue.Conn, store *state.Store, e *expression.Evaluator, signer *links.Signer, log *zap.Logger) (*trigger.Host, error) {
	c := trigger.Config{
		Backend: conn, Store: store, Evaluator: e, Signer: signer, Files: conn.Files(), Log: log,
		MaxBody: int64(s.WebhookMaxBody), MaxWait: s.WebhookTimeout, MissedWindow: min(s.ScheduleWindow, s.Retention/2),
	}
	policy, err := egress.NewPolicy(s.Egress, s.EgressAllow)
	if err != nil {
		return nil, err
	}
	c.HTTP = &http.Client{Transport: policy.Transport(maxStreams)}
	if c.Rate, err = rateOf("REPRISE_WEBHOOK_RATE", s.WebhookRate); err != nil {
		return nil, err
	}
	if c.RatePerIP, err = rateOf("REPRISE_WEBHOOK_RATE_PER_IP", s.WebhookRatePerIP); err != nil {
		return nil, err
	}
	for _, text := range s.TrustedProxies {
		prefix, err := netip.ParsePrefix(text)
		if one, e := netip.ParseAddr(text); e == nil {
			prefix, err = netip.PrefixFrom(one, one.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("REPRISE_TRUSTED_PROXIES: %q is neither an address nor a range such as 10.0.0.0/8", text)
		}
		c.Proxies = append(c.Proxies, prefix)
	}
	if c.Credentials, err = callerCredentials(s, log); err != nil {
		return nil, err
	}
	return trigger.New(c), nil
}

func rateOf(setting, text string) (workflow.Rate, error) {
	if strings.EqualFold(strings.TrimSpace(text), "off") {
		return workflow.Rate{}, nil
	}
	r, err := workflow.ParseRate(text)
	if err != nil {
		return r, fmt.Errorf("%s: %w", setting, err)
	}
	return r, nil
}

// callerTypes are the credentials that callers are checked against. No other secret is
// given out in a coordinator, whatever its file holds.
var callerTypes = map[string]bool{callers.Basic: true, callers.Header: true, callers.JWT: true}

// callerCredentials returns those that callers are checked against; nil when there is no file.
func callerCredentials(s Coordinator, log *zap.Logger) (callers.Credentials, error) {
	if s.WebhookCredentialsFile == "" {
		return nil, nil
	}
	keys, err := credentials.ParseKeys(s.WebhookCredentialsKey)
	if err != nil {
		return nil, fmt.Errorf("REPRISE_WEBHOOK_CREDENTIALS_KEY: %w", err)
	}
	store, err := credentials.Open(s.WebhookCredentialsFile, keys, log)
	if err != nil {
		return nil, fmt.Errorf("REPRISE_WEBHOOK_CREDENTIALS_FILE: %w", err)
	}
	return func(ctx context.Context, kind string, ref workflow.CredentialRef) (map[string]any, error) {
		if !callerTypes[kind] {
			return nil, fmt.Errorf("credentials of the type %s are not for callers", kind)
		}
		return store.Get(ctx, kind, ref)
	}, nil
}

// withTriggers gives the calls of triggers to their host, below the public URL's own path too, and
// the others to the links.
func withTriggers(others http.Handler, host *trigger.Host, publicURL string) http.Handler {
	prefix := ""
	if u, err := url.Parse(publicURL); err == nil {
		prefix = strings.TrimRight(u.Path, "/")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, prefix); ok && prefix != "" && trigger.Serves(rest) {
			r = r.Clone(r.Context())
			r.URL.Path = rest
			r.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, prefix)
		}
		if trigger.Serves(r.URL.Path) {
			host.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}
