package credential

import (
	"net/url"
	"strings"
)

// scheme says how a service takes its key. One of header, query and user is set; the zero value is a
// bearer token.
type scheme struct {
	// key are the fields that may hold the key; nil is keyFields.
	key []string
	// header that the key goes into, after prefix.
	header, prefix string
	// query parameters by name, and the fields with their values.
	query [][2]string
	// user and password of basic authentication: fields, a text in quotes, or fields joined by "+".
	user, password string
	// optional: a server of this type may want no key.
	optional bool
	// fixed headers.
	fixed map[string]string
	// fields that become headers when they are not empty.
	fields map[string]string
	// test is a URL that only a good credential can read. {field} and {field|default} are filled in.
	test string
}

var schemes = map[string]scheme{
	"activeCampaignApi":    {header: "Api-Token", test: "{apiUrl}/api/3/fields"},
	"aimlApi":              {test: "{url|https://api.aimlapi.com/v1}/models"},
	"airtableTokenApi":     {key: []string{"accessToken"}, test: "https://api.airtable.com/v0/meta/whoami"},
	"anthropicApi":         {header: "x-api-key", fixed: map[string]string{"anthropic-version": "2023-06-01"}, test: "{url|https://api.anthropic.com}/v1/models"},
	"apifyApi":             {test: "https://api.apify.com/v2/users/me"},
	"asanaApi":             {key: []string{"accessToken"}, test: "https://app.asana.com/api/1.0/users/me"},
	"azureOpenAiApi":       {header: "api-key"},
	"baserowTokenApi":      {header: "Authorization", prefix: "Token "},
	"brevoApi":             {header: "api-key", test: "https://api.brevo.com/v3/account"},
	"calendlyApi":          {test: "https://api.calendly.com/users/me"},
	"clickUpApi":           {header: "Authorization", test: "https://api.clickup.com/api/v2/team"},
	"clockifyApi":          {header: "X-Api-Key", test: "https://api.clockify.me/api/v1/workspaces"},
	"cloudflareApi":        {key: []string{"apiToken"}, test: "https://api.cloudflare.com/client/v4/user/tokens/verify"},
	"cohereApi":            {test: "{url|https://api.cohere.ai}/v1/models"},
	"deepSeekApi":          {test: "{url|https://api.deepseek.com}/models"},
	"discordBotApi":        {key: []string{"botToken"}, header: "Authorization", prefix: "Bot ", test: "https://discord.com/api/v10/users/@me"},
	"elevenLabsApi":        {header: "xi-api-key", test: "https://api.elevenlabs.io/v1/models"},
	"facebookGraphApi":     {query: [][2]string{{"access_token", "accessToken"}}, test: "https://graph.facebook.com/v23.0/me"},
	"freshdeskApi":         {user: "apiKey", password: `"X"`, test: "https://{domain}.freshdesk.com/api/v2/tickets?per_page=1"},
	"githubApi":            {key: []string{"accessToken"}, header: "Authorization", prefix: "token ", test: "{server|https://api.github.com}/user"},
	"gitlabApi":            {key: []string{"accessToken"}, header: "Private-Token", test: "{server|https://gitlab.com}/api/v4/user"},
	"googlePalmApi":        {header: "x-goog-api-key", test: "{host|https://generativelanguage.googleapis.com}/v1beta/models"},
	"groqApi":              {test: "https://api.groq.com/openai/v1/models"},
	"hubspotAppToken":      {key: []string{"appToken"}, test: "https://api.hubapi.com/account-info/v3/details"},
	"huggingFaceApi":       {test: "https://huggingface.co/api/whoami-v2"},
	"jinaAiApi":            {},
	"jiraSoftwareCloudApi": {user: "email", password: "apiToken", test: "{domain}/rest/api/2/myself"},
	"linearApi":            {header: "Authorization"},
	"magento2Api":          {key: []string{"accessToken"}, test: "{host}/rest/default/V1/modules"},
	"mailgunApi":           {user: `"api"`, password: "apiKey", test: "https://{apiDomain|api.mailgun.net}/v3/domains"},
	"mistralCloudApi":      {test: "https://api.mistral.ai/v1/models"},
	"mondayComApi":         {key: []string{"apiToken"}},
	"n8nApi":               {header: "X-N8N-API-KEY", test: "{baseUrl}/workflows?limit=1"},
	"nocoDb":               {key: []string{"apiToken"}, header: "xc-auth", test: "{host}/api/v1/auth/user/me"},
	"nocoDbApiToken":       {key: []string{"apiToken"}, header: "xc-token", test: "{host}/api/v1/auth/user/me"},
	"notionApi":            {fixed: map[string]string{"Notion-Version": "2022-02-22"}, test: "https://api.notion.com/v1/users/me"},
	"ollamaApi":            {optional: true, test: "{baseUrl|http://localhost:11434}/api/tags"},
	"openAiApi":            {fields: map[string]string{"OpenAI-Organization": "organizationId"}, test: "{url|https://api.openai.com/v1}/models"},
	"openRouterApi":        {test: "{url|https://openrouter.ai/api/v1}/key"},
	"phantombusterApi":     {header: "X-Phantombuster-Key", test: "https://api.phantombuster.com/api/v2/agents/fetch-all"},
	"pineconeApi":          {header: "Api-Key", test: "https://api.pinecone.io/indexes"},
	"pipedriveApi":         {query: [][2]string{{"api_token", "apiToken"}}, test: "https://api.pipedrive.com/v1/users/me"},
	"qdrantApi":            {header: "api-key", optional: true, test: "{qdrantUrl}/collections"},
	"qualysApi":            {user: "username", password: "password", fixed: map[string]string{"X-Requested-With": "reprise"}},
	"sendGridApi":          {test: "https://api.sendgrid.com/v3/scopes"},
	"serpApi":              {query: [][2]string{{"api_key", "apiKey"}}, test: "https://serpapi.com/account.json"},
	"shopifyAccessTokenApi": {
		key: []string{"accessToken"}, header: "X-Shopify-Access-Token",
		test: "https://{shopSubdomain}.myshopify.com/admin/api/2024-07/shop.json",
	},
	"slackApi":  {key: []string{"accessToken"}, test: "https://slack.com/api/users.profile.get"},
	"stripeApi": {key: []string{"secretKey"}, test: "https://api.stripe.com/v1/charges?limit=1"},
	"supabaseApi": {
		key: []string{"serviceRole"}, fields: map[string]string{"apikey": "serviceRole"},
		test: "{host}/rest/v1/",
	},
	"telegramApi":    {optional: true, test: "{baseUrl|https://api.telegram.org}/bot{accessToken}/getMe"},
	"todoistApi":     {},
	"trelloApi":      {query: [][2]string{{"key", "apiKey"}, {"token", "apiToken"}}, test: "https://api.trello.com/1/tokens/{apiToken}/member"},
	"typeformApi":    {key: []string{"accessToken"}, test: "https://api.typeform.com/me"},
	"virusTotalApi":  {key: []string{"apiToken", "apiKey"}, header: "x-apikey"},
	"whatsAppApi":    {key: []string{"accessToken"}, test: "https://graph.facebook.com/v23.0/{businessAccountId}"},
	"wooCommerceApi": {user: "consumerKey", password: "consumerSecret", test: "{url}/wp-json/wc/v3/products/categories"},
	"wordpressApi":   {user: "username", password: "password", test: "{url}/wp-json/wp/v2/users"},
	"xAiApi":         {test: "{url|https://api.x.ai/v1}/models"},
	"zendeskApi":     {user: "email+/token", password: "apiToken", test: "https://{subdomain}.zendesk.com/api/v2/ticket_fields.json"},
}

func (g *Grant) scheme(kind string, s scheme, data Data) error {
	switch {
	case s.user != "":
		user, password := data.part(s.user), data.part(s.password)
		if user == "" || password == "" {
			return &MissingError{kind, s.user + " and " + s.password}
		}
		g.basic(user, password)
	case s.query != nil:
		for _, p := range s.query {
			value := data.Text(p[1])
			if value == "" {
				return &MissingError{kind, p[1]}
			}
			g.Query = append(g.Query, Pair{p[0], value})
		}
	default:
		fields := s.key
		if fields == nil {
			fields = keyFields
		}
		key := data.Text(fields...)
		switch {
		case key == "" && s.optional:
		case key == "":
			return &MissingError{kind, strings.Join(fields, `" or "`)}
		case kind == "telegramApi": // has its token in the path
		case s.header == "":
			g.bearer(key)
		default:
			g.header(s.header, s.prefix+key)
		}
	}
	for name, value := range s.fixed {
		g.header(name, value)
	}
	for name, field := range s.fields {
		if value := data.Text(field); value != "" {
			g.header(name, value)
		}
	}
	g.custom(data)
	return nil
}

// part is a field, a text in quotes, or a field with a text added to it.
func (d Data) part(what string) string {
	if text, ok := strings.CutPrefix(what, `"`); ok {
		return strings.TrimSuffix(text, `"`)
	}
	field, more, joined := strings.Cut(what, "+")
	value := d.Text(field)
	if joined && value != "" {
		value += more
	}
	return value
}

// TestURL is an address that only a good credential of the type can read; ok is false when none is
// known. It holds a secret when the service wants it so.
func TestURL(kind string, data Data) (address string, ok bool) {
	s := schemes[kind]
	if s.test == "" {
		return "", false
	}
	var b strings.Builder
	for rest := s.test; ; {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			break
		}
		name, behind, _ := strings.Cut(after, "}")
		name, fallback, _ := strings.Cut(name, "|")
		value := data.Text(name)
		if value == "" {
			value = fallback
		}
		if value == "" {
			return "", false
		}
		value = strings.TrimRight(value, "/")
		if b.Len() > 0 && !strings.HasPrefix(behind, ".") { // a part of the path
			value = url.PathEscape(value)
		}
		b.WriteString(value)
		rest = behind
	}
	return b.String(), true
}
