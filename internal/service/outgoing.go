package service

import (
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/egress"
	"github.com/reprise-engine/reprise/internal/redact"
)

// openCredentials reads the credentials of a worker, and returns a log that shows none of them.
func openCredentials(s *Worker, log *zap.Logger) (*credentials.Store, *zap.Logger, error) {
	store := s.Credentials
	if store == nil {
		keys, err := credentials.ParseKeys(s.CredentialsKey)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", credentials.EnvKey, err)
		}
		store = &credentials.Store{}
		if s.CredentialsFile != "" {
			if store, err = credentials.Open(s.CredentialsFile, keys, log); err != nil {
				return nil, nil, err
			}
		}
	}
	secrets := &redact.Set{}
	secrets.Add(store.Secrets()...)
	return store, redact.Logger(log, secrets), nil
}

// outgoing is the transport of the HTTP requests that workflows make.
func outgoing(s *Worker, log *zap.Logger) (*http.Transport, error) {
	policy, err := egress.NewPolicy(s.Egress, s.EgressAllow)
	if err != nil {
		return nil, err
	}
	log.Info("HTTP requests of workflows reach", zap.String("egress", s.Egress), zap.Strings("allowed", s.EgressAllow))
	return policy.Transport(s.Concurrency), nil
}
