package http

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	nethttp "net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/atom"
	ext "github.com/mmcdole/gofeed/extensions"
	jsonfeed "github.com/mmcdole/gofeed/json"
	"github.com/mmcdole/gofeed/rss"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// maxFeedRedirects is what readers of feeds follow.
const maxFeedRedirects = 5

// executeFeed reads the feed of every item; version 1 reads only that of the first.
func (c Config) executeFeed(ctx context.Context, call *node.Call) (*node.Result, error) {
	var all workflow.PairedItems
	if call.Node.TypeVersion < 1.1 && len(call.Inputs) > 0 && len(call.Inputs[0]) > 1 {
		all = workflow.PairedWithAll(len(call.Inputs[0]))
		once := *call
		once.Inputs = []workflow.Items{call.Inputs[0][:1]}
		call = &once
	}
	x := &execution{Config: c, call: call, read: (*parameters).readFeed}
	x.output = func(resp *response, o options, _ workflow.Item, index int) (workflow.Items, error) {
		p := &parameters{ctx: ctx, call: call, item: index}
		custom := strings.FieldsFunc(p.text("options.customFields", ""), func(r rune) bool { return r == ',' || r == ' ' })
		if p.err != nil {
			return nil, p.err
		}
		items, err := resp.feedItems(o, custom, index)
		for i := range items {
			if all != nil {
				items[i].PairedItem = all
			}
		}
		return items, err
	}
	return x.execute(ctx)
}

// readFeed evaluates the parameters of the RSS Read node.
func (p *parameters) readFeed() *request { return p.feedAt("url") }

func (p *parameters) feedAt(path string) *request {
	r := &request{
		method: nethttp.MethodGet, url: p.address(path),
		options: options{
			timeout: time.Minute, follow: true, maxRedirects: maxFeedRedirects,
			insecure: p.flag("options.ignoreSSL", false), format: "text",
		},
	}
	r.headers.Set("Accept", `"application/rss+xml, application/rdf+xml;q=0.8, application/atom+xml;q=0.6, application/xml;q=0.4, text/xml;q=0.4, application/feed+json;q=0.4"`)
	return r
}

func feedFailure(message, description string) error {
	return &failure{node: &engine.NodeError{Name: "NodeOperationError", Message: message, Description: description}, item: jsonobject.Quote(message)}
}

// feedItems makes an item per entry, with the members that n8n's library (rss-parser) gives them.
func (resp *response) feedItems(o options, custom []string, index int) (workflow.Items, error) {
	if resp.status < 200 || resp.status > 299 {
		return nil, statusFailure(resp.status, resp.body, o)
	}
	var entries []jsonobject.Object
	var err error
	switch gofeed.DetectFeedType(bytes.NewReader(resp.body)) {
	case gofeed.FeedTypeRSS:
		var feed *rss.Feed
		if feed, err = (&rss.Parser{}).Parse(bytes.NewReader(resp.body)); err == nil {
			for _, item := range feed.Items {
				entries = append(entries, rssEntry(item, custom))
			}
		}
	case gofeed.FeedTypeAtom:
		var feed *atom.Feed
		if feed, err = (&atom.Parser{}).Parse(bytes.NewReader(resp.body)); err == nil {
			for _, entry := range feed.Entries {
				entries = append(entries, atomEntry(entry, custom))
			}
		}
	case gofeed.FeedTypeJSON:
		var feed *jsonfeed.Feed
		if feed, err = (&jsonfeed.Parser{}).Parse(bytes.NewReader(resp.body)); err == nil {
			for _, item := range feed.Items {
				entries = append(entries, jsonEntry(item))
			}
		}
	default:
		return nil, feedFailure("The URL holds no feed: Feed not recognized as RSS 1 or 2.", "Check that the URL leads to the feed itself and not to a page about it")
	}
	if err != nil {
		return nil, feedFailure("The feed cannot be read: "+err.Error(), "")
	}
	items := workflow.Items{}
	for _, entry := range entries {
		items = append(items, workflow.Item{JSON: entry.JSON(), PairedItem: workflow.Paired(index)})
	}
	return items, nil
}

// put sets a text that is there.
func put(o *jsonobject.Object, name, text string) {
	if text != "" {
		o.Set(name, jsonobject.Quote(text))
	}
}

func rssEntry(item *rss.Item, custom []string) jsonobject.Object {
	var o jsonobject.Object
	dublin := func(pick func(*ext.DublinCoreExtension) []string) string {
		if item.DublinCoreExt == nil {
			return ""
		}
		if list := pick(item.DublinCoreExt); len(list) > 0 {
			return list[0]
		}
		return ""
	}
	creator := dublin(func(d *ext.DublinCoreExtension) []string { return d.Creator })
	date := dublin(func(d *ext.DublinCoreExtension) []string { return d.Date })
	if creator != "" {
		put(&o, "creator", creator)
	} else {
		put(&o, "creator", item.Author)
	}
	put(&o, "date", date)
	put(&o, "language", dublin(func(d *ext.DublinCoreExtension) []string { return d.Language }))
	put(&o, "rights", dublin(func(d *ext.DublinCoreExtension) []string { return d.Rights }))
	put(&o, "source", dublin(func(d *ext.DublinCoreExtension) []string { return d.Source }))
	put(&o, "title", item.Title)
	put(&o, "link", item.Link)
	put(&o, "pubDate", item.PubDate)
	put(&o, "author", item.Author)
	if item.Content != "" {
		put(&o, "content:encoded", item.Content)
		o.Set("content:encodedSnippet", jsonobject.Quote(snippet(item.Content)))
	}
	put(&o, "dc:creator", creator)
	put(&o, "dc:date", date)
	put(&o, "comments", item.Comments)
	if e := item.Enclosure; e != nil {
		var enclosure jsonobject.Object
		put(&enclosure, "url", e.URL)
		put(&enclosure, "length", e.Length)
		put(&enclosure, "type", e.Type)
		o.Set("enclosure", enclosure.String())
	}
	if item.Description != "" {
		o.Set("content", jsonobject.Quote(item.Description))
		o.Set("contentSnippet", jsonobject.Quote(snippet(item.Description)))
	}
	if item.GUID != nil {
		put(&o, "guid", item.GUID.Value)
	}
	if len(item.Categories) > 0 {
		var names []string
		for _, c := range item.Categories {
			names = append(names, jsonobject.Quote(c.Value))
		}
		o.Set("categories", "["+strings.Join(names, ",")+"]")
	}
	if item.ITunesExt != nil {
		o.Set("itunes", itunes(item.ITunesExt))
	}
	for _, field := range custom {
		if o.Has(field) {
			continue
		}
		if text, ok := item.Custom[field]; ok {
			put(&o, field, text)
			continue
		}
		extension(&o, field, item.Extensions)
	}
	if item.PubDateParsed != nil {
		isoDate(&o, item.PubDateParsed)
	} else if at, err := time.Parse(time.RFC3339, date); err == nil {
		isoDate(&o, &at)
	}
	return o
}

func isoDate(o *jsonobject.Object, at *time.Time) {
	o.Set("isoDate", jsonobject.Quote(at.UTC().Format("2006-01-02T15:04:05.000Z")))
}

func itunes(e *ext.ITunesItemExtension) string {
	var o jsonobject.Object
	put(&o, "author", e.Author)
	put(&o, "subtitle", e.Subtitle)
	put(&o, "summary", e.Summary)
	put(&o, "explicit", e.Explicit)
	put(&o, "duration", e.Duration)
	put(&o, "image", e.Image)
	put(&o, "episode", e.Episode)
	put(&o, "season", e.Season)
	put(&o, "episodeType", e.EpisodeType)
	return o.String()
}

// extension is an element of another namespace, as "media:thumbnail": its text, or its attributes in
// the form of the XML library that rss-parser uses.
func extension(o *jsonobject.Object, field string, extensions ext.Extensions) {
	space, name, ok := strings.Cut(field, ":")
	if !ok {
		return
	}
	list := extensions[space][name]
	if len(list) == 0 {
		return
	}
	if len(list[0].Attrs) == 0 {
		put(o, field, list[0].Value)
		return
	}
	attributes, err := json.Marshal(list[0].Attrs)
	if err != nil {
		return
	}
	var element jsonobject.Object
	put(&element, "_", list[0].Value)
	element.Set("$", string(attributes))
	o.Set(field, element.String())
}

func atomEntry(entry *atom.Entry, custom []string) jsonobject.Object {
	var o jsonobject.Object
	put(&o, "title", entry.Title)
	put(&o, "link", atomLink(entry.Links))
	published := entry.PublishedParsed
	if published == nil {
		published = entry.UpdatedParsed
	}
	if published != nil {
		put(&o, "pubDate", published.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if len(entry.Authors) > 0 {
		put(&o, "author", entry.Authors[0].Name)
	}
	if entry.Content != nil && entry.Content.Value != "" {
		o.Set("content", jsonobject.Quote(entry.Content.Value))
		o.Set("contentSnippet", jsonobject.Quote(snippet(entry.Content.Value)))
	}
	if entry.Summary != "" {
		put(&o, "summary", entry.Summary)
		o.Set("summarySnippet", jsonobject.Quote(snippet(entry.Summary)))
	}
	put(&o, "id", entry.ID)
	for _, field := range custom {
		if !o.Has(field) {
			extension(&o, field, entry.Extensions)
		}
	}
	if published != nil {
		isoDate(&o, published)
	}
	return o
}

func atomLink(links []*atom.Link) string {
	if i := slices.IndexFunc(links, func(l *atom.Link) bool { return l.Rel == "alternate" || l.Rel == "" }); i >= 0 {
		return links[i].Href
	}
	if len(links) > 0 {
		return links[0].Href
	}
	return ""
}

func jsonEntry(item *jsonfeed.Item) jsonobject.Object {
	var o jsonobject.Object
	put(&o, "title", item.Title)
	put(&o, "link", item.URL)
	put(&o, "pubDate", item.DatePublished)
	if len(item.Authors) > 0 {
		put(&o, "creator", item.Authors[0].Name)
	} else if item.Author != nil {
		put(&o, "creator", item.Author.Name)
	}
	content := item.ContentHTML
	if content == "" {
		content = item.ContentText
	}
	if content != "" {
		o.Set("content", jsonobject.Quote(content))
		o.Set("contentSnippet", jsonobject.Quote(snippet(content)))
	}
	put(&o, "summary", item.Summary)
	put(&o, "guid", item.ID)
	if len(item.Tags) > 0 {
		var names []string
		for _, tag := range item.Tags {
			names = append(names, jsonobject.Quote(tag))
		}
		o.Set("categories", "["+strings.Join(names, ",")+"]")
	}
	if at, err := time.Parse(time.RFC3339, item.DatePublished); err == nil {
		isoDate(&o, &at)
	}
	return o
}

var (
	blockTag = regexp.MustCompile(`(?s)([^\n])</?(?:h|br|p|ul|ol|li|blockquote|section|table|tr|div).*?>([^\n])`)
	anyTag   = regexp.MustCompile(`(?s)<.*?>`)
)

// snippet is HTML as plain text, with a line for each block.
func snippet(markup string) string {
	text := blockTag.ReplaceAllString(markup, "$1\n$2")
	return strings.TrimSpace(html.UnescapeString(anyTag.ReplaceAllString(text, "")))
}
