package credential

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// IsOAuth2 reports whether a credential has tokens of OAuth2: by its data, or by its type's name.
func IsOAuth2(kind string, data Data) bool {
	if strings.HasSuffix(kind, "OAuth2Api") || strings.HasSuffix(kind, "OAuth2") || kind == "oAuth2Api" || kind == "googleApi" {
		return true
	}
	_, has := data["oauthTokenData"].(map[string]any)
	return has
}

// tokenURLs are where services give out tokens, by the beginning of their types' names. n8n keeps
// them in its code, and so does not export them.
var tokenURLs = []struct{ prefix, url string }{
	{"gmail", "https://oauth2.googleapis.com/token"},
	{"google", "https://oauth2.googleapis.com/token"},
	{"youTube", "https://oauth2.googleapis.com/token"},
	{"microsoft", "https://login.microsoftonline.com/common/oauth2/v2.0/token"},
	{"airtable", "https://airtable.com/oauth2/v1/token"},
	{"calendly", "https://auth.calendly.com/oauth/token"},
	{"dropbox", "https://api.dropboxapi.com/oauth2/token"},
	{"github", "https://github.com/login/oauth/access_token"},
	{"hubspot", "https://api.hubapi.com/oauth/v1/token"},
	{"linkedIn", "https://www.linkedin.com/oauth/v2/accessToken"},
	{"quickBooks", "https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer"},
	{"slack", "https://slack.com/api/oauth.v2.access"},
	{"spotify", "https://accounts.spotify.com/api/token"},
	{"twitter", "https://api.x.com/2/oauth2/token"},
	{"xero", "https://identity.xero.com/connect/token"},
	{"zoom", "https://zoom.us/oauth/token"},
}

// tokenURL of a credential, "" when it is not known.
func tokenURL(kind string, data Data) string {
	if at := data.Text("accessTokenUrl"); at != "" {
		return at
	}
	if kind == "googleApi" {
		return "https://oauth2.googleapis.com/token"
	}
	for _, known := range tokenURLs {
		if strings.HasPrefix(kind, known.prefix) {
			return known.url
		}
	}
	return ""
}

// Tokens gets access tokens of OAuth2 and keeps them until they expire, in this process's
// memory: with client credentials, with a refresh token, and with the key of a Google service
// account. The zero value is ready; it is safe for concurrent use.
//
// A service that gives a new refresh token with every access token makes the one in the credentials
// file worthless. The new one is kept in memory here, and other processes do not know it.
type Tokens struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	mu      sync.Mutex
	entries map[[sha256.Size]byte]*entry
}

type entry struct {
	mu      sync.Mutex // held while a token is asked for, so that one process asks once
	access  string
	refresh string
	expires time.Time // zero is not known
}

// maxTokens bounds what is kept; expressions in credentials can make any number of them.
const maxTokens = 4096

// early is how long before its end a token is no longer used.
const early = 30 * time.Second

// Resolve returns a credential's data with a good access token in oauthTokenData, and data itself when
// it needs none or has one that cannot be renewed. refused is an access token that the service did not
// take: it is not returned again if there is a way to another one.
func (t *Tokens) Resolve(ctx context.Context, client *http.Client, kind string, data Data, refused string) (Data, error) {
	if !IsOAuth2(kind, data) {
		return data, nil
	}
	given, _ := data["oauthTokenData"].(map[string]any)
	e := t.entry(kind, data)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.access == "" && e.refresh == "" {
		e.access, e.refresh = AccessToken(data), Data(given).Text("refresh_token")
	}
	now := time.Now
	if t.Now != nil {
		now = t.Now
	}
	old := e.access == "" || e.access == refused || !e.expires.IsZero() && !now().Before(e.expires.Add(-early))
	if old {
		form, err := grantForm(kind, data, e.refresh, now())
		switch {
		case err != nil:
			return nil, err
		case form == nil && e.access == "":
			return nil, fmt.Errorf("the OAuth2 credential has no access token, and no way to one: it needs client credentials or a refresh token; connect it in n8n and export it again")
		case form != nil:
			if err := e.ask(ctx, client, kind, data, form, now); err != nil {
				return nil, err
			}
		}
	}
	resolved, tokens := maps.Clone(data), map[string]any{}
	maps.Copy(tokens, given)
	tokens["access_token"] = e.access
	if e.refresh != "" {
		tokens["refresh_token"] = e.refresh
	}
	resolved["oauthTokenData"] = tokens
	return resolved, nil
}

func (t *Tokens) entry(kind string, data Data) *entry {
	text, _ := json.Marshal([]any{kind, data}) // of decoded JSON; keys are sorted
	key := sha256.Sum256(text)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil || len(t.entries) >= maxTokens {
		t.entries = map[[sha256.Size]byte]*entry{}
	}
	e := t.entries[key]
	if e == nil {
		e = &entry{}
		t.entries[key] = e
	}
	return e
}

// grantForm is what a token is asked for with; nil when there is no way to one.
func grantForm(kind string, data Data, refresh string, now time.Time) (url.Values, error) {
	form := url.Values{}
	switch {
	case kind == "googleApi":
		assertion, err := serviceAccount(kind, data, now)
		if err != nil {
			return nil, err
		}
		form.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		form.Set("assertion", assertion)
	case data.Text("grantType") == "clientCredentials":
		form.Set("grant_type", "client_credentials")
		if scope := data.Text("scope"); scope != "" {
			form.Set("scope", scope)
		}
		if data.Text("sendAdditionalBodyProperties") == "true" {
			var more map[string]any
			if json.Unmarshal([]byte(cmp.Or(data.Text("additionalBodyProperties"), "{}")), &more) != nil {
				return nil, errors.New("the additional body properties of the OAuth2 credential are no JSON object")
			}
			for name := range more {
				form.Set(name, Data(more).Text(name))
			}
		}
	case refresh != "" && data.Text("clientId") != "":
		form.Set("grant_type", "refresh_token")
		form.Set("refresh_token", refresh)
	default:
		return nil, nil
	}
	return form, nil
}

// serviceAccount signs the assertion of a Google service account (RFC 7523).
func serviceAccount(kind string, data Data, now time.Time) (string, error) {
	email, pem := data.Text("email"), strings.ReplaceAll(data.Text("privateKey"), `\n`, "\n")
	if email == "" || pem == "" {
		return "", &MissingError{kind, "email and privateKey"}
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(pem))
	if err != nil {
		return "", errors.New("the private key of the service account is no RSA key in PEM format")
	}
	scopes := strings.Join(strings.FieldsFunc(data.Text("scopes", "scope"), func(r rune) bool { return strings.ContainsRune(", \n\t", r) }), " ")
	claims := jwt.MapClaims{
		"iss": email, "scope": cmp.Or(scopes, "https://www.googleapis.com/auth/cloud-platform"), "aud": tokenURL(kind, data),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	if subject := data.Text("delegatedEmail"); subject != "" && data.Text("inpersonate") != "false" {
		claims["sub"] = subject
	}
	return jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(key)
}

const (
	maxTokenBytes = 1 << 20
	tokenTimeout  = 30 * time.Second
)

// ask gets a token. The service's error is told by its code and description (RFC 6749, 5.2) only.
func (e *entry) ask(ctx context.Context, client *http.Client, kind string, data Data, form url.Values, now func() time.Time) error {
	at := tokenURL(kind, data)
	if at == "" {
		return fmt.Errorf("the OAuth2 credential of type %s names no access token URL", kind)
	}
	id, secret := data.Text("clientId"), data.Text("clientSecret")
	inBody := data.Text("authentication") == "body" || secret == ""
	if id != "" && inBody {
		form.Set("client_id", id)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.New("the access token URL of the OAuth2 credential is no URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if id != "" && !inBody {
		req.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	}
	own := http.Client{Transport: client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the token server redirects, which is not followed with a secret") // RFC 9700, 4.12
	}}
	started := now()
	resp, err := own.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("get an OAuth2 token from %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenBytes))
	if err != nil {
		return fmt.Errorf("get an OAuth2 token from %s: %w", req.URL.Host, err)
	}
	var answer map[string]any
	_ = json.Unmarshal(body, &answer) // what is no JSON has no token
	token := Data(answer).Text("access_token")
	if token == "" || resp.StatusCode > 299 {
		reason := cmp.Or(strings.Trim(Data(answer).Text("error")+": "+Data(answer).Text("error_description"), ": "), resp.Status)
		return fmt.Errorf("get an OAuth2 token from %s: the server refused: %s", req.URL.Host, hideForm(reason, form, secret))
	}
	e.access, e.expires = token, time.Time{}
	e.refresh = cmp.Or(Data(answer).Text("refresh_token"), e.refresh)
	var lifetime struct {
		ExpiresIn json.Number `json:"expires_in"`
	}
	if json.Unmarshal(body, &lifetime) == nil {
		if seconds, err := lifetime.ExpiresIn.Float64(); err == nil && seconds > 0 {
			e.expires = started.Add(time.Duration(seconds * float64(time.Second)))
		}
	}
	return nil
}

// hideForm takes out of a server's words what it was sent.
func hideForm(text string, form url.Values, secret string) string {
	for _, hidden := range []string{secret, form.Get("refresh_token"), form.Get("assertion")} {
		if len(hidden) > 3 {
			text = strings.ReplaceAll(text, hidden, "[secret]")
		}
	}
	return text
}
