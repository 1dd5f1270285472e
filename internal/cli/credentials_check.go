package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/redact"
	"github.com/reprise-engine/reprise/pkg/credential"
	"github.com/reprise-engine/reprise/pkg/nodes/mail"
)

func credentialsTestCommand() *cobra.Command {
	var path, keyFile string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Ask a service whether a credential is good.", Args: cobra.ExactArgs(1),
		Long: `Ask a service whether a credential is good.

NAME is a name or an id. What is done depends on the type: a mail server is logged in to, of other services
something is read that only a good key can read, as the list of models, and OAuth2 gets a token.
Nothing is changed anywhere. The request goes out from here, not from a worker.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, keys, err := credentialsAccess(path, keyFile)
			if err != nil {
				return err
			}
			file, err := credentials.Read(path)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			var failures []error
			found := false
			for _, e := range file.Entries {
				if e.ID != args[0] && e.Name != args[0] {
					continue
				}
				found = true
				done, err := testEntry(ctx, e, keys)
				if err != nil {
					failures = append(failures, fmt.Errorf("credential %q (%s): %w", e.Name, e.Type, err))
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "credential %q (%s) is good: %s\n", e.Name, e.Type, done)
			}
			if !found {
				return fmt.Errorf("there is no credential %q in %s", args[0], path)
			}
			return errors.Join(failures...)
		},
	}
	cmd.Flags().StringVar(&path, "file", "", "credentials file (default: REPRISE_CREDENTIALS_FILE)")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait for the service")
	keyFileFlag(cmd, &keyFile)
	return cmd
}

// testEntry tries a credential and says what worked. No error shows a secret.
func testEntry(ctx context.Context, e *credentials.Entry, keys credentials.Keys) (string, error) {
	data, err := e.Decrypted(keys)
	if err != nil {
		return "", err
	}
	secrets := &redact.Set{}
	secrets.Add(credentials.Secrets(e.Type, data)...)
	done, err := tryCredential(ctx, e.Type, e.Name, data, secrets)
	if err != nil {
		return "", errors.New(secrets.String(err.Error()))
	}
	return done, nil
}

func tryCredential(ctx context.Context, kind, name string, data map[string]any, secrets *redact.Set) (string, error) {
	for field, value := range data {
		if text, ok := value.(string); ok && strings.HasPrefix(text, "=") && strings.Contains(text, "{{") {
			return "", fmt.Errorf("field %q is an expression, which has a value only in a run; it cannot be tested", field)
		}
	}
	if kind == "smtp" {
		if err := mail.CheckLogin(ctx, name, data); err != nil {
			return "", err
		}
		return "the mail server took the login", nil
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	isToken := credential.IsOAuth2(kind, data)
	if isToken {
		resolved, err := (&credential.Tokens{}).Resolve(ctx, client, kind, data, credential.AccessToken(data))
		if err != nil {
			return "", err
		}
		secrets.Add(credentials.Secrets(kind, resolved)...)
		if credential.AccessToken(resolved) == credential.AccessToken(data) {
			return "", errors.New("it has an access token and no way to another one; whether that is still good shows when it is used")
		}
		return "the service gave an access token", nil
	}
	address, ok := credential.TestURL(kind, data)
	if !ok {
		return "", errors.New("there is no test for this type, or a field that the test needs is empty; run a workflow that uses it")
	}
	grant, err := credential.New(kind, data)
	if err != nil {
		return "", err
	}
	return askService(ctx, client, address, grant)
}

const maxTestBytes = 4 << 20

// askService reads an address with a credential.
func askService(ctx context.Context, client *http.Client, address string, grant *credential.Grant) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil || req.URL.Host == "" {
		return "", errors.New("the address in the credential is no URL")
	}
	query := req.URL.Query()
	for _, p := range grant.Query {
		query.Set(p.Name, p.Value)
	}
	req.URL.RawQuery = query.Encode()
	for name, value := range grant.Headers {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error // holds the URL, and with it perhaps the key
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return "", fmt.Errorf("ask %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTestBytes))
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", req.URL.Host, err)
	}
	ok := gjson.GetBytes(body, "ok") // Slack and Telegram tell it there, whatever the status
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || ok.Type == gjson.False:
		return "", fmt.Errorf("%s refused it (status %s)", req.URL.Host, resp.Status)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return "", fmt.Errorf("%s answered with status %s, which says neither that it is good nor that it is not", req.URL.Host, resp.Status)
	}
	return req.URL.Host + " answered with status " + resp.Status, nil
}
