package text

import (
	"fmt"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"
)

// Parts are the elements of a page that a CSS selector finds, as HTML, or as the text that a
// reader sees when shown is set. What the selectors of omit find is taken out of them. No element that
// fits is an empty list; its errors name the selector that is not valid.
func Parts(page, selector string, shown bool, omit []string) ([]string, error) {
	document, err := goquery.NewDocumentFromReader(strings.NewReader(page))
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	for _, unwanted := range omit {
		if _, err := cascadia.Compile(unwanted); err != nil {
			return nil, fmt.Errorf("CSS selector %q: %w", unwanted, err)
		}
		document.Find(unwanted).Remove()
	}
	found, err := find(document.Selection, selector)
	if err != nil {
		return nil, fmt.Errorf("CSS selector %q: %w", selector, err)
	}
	parts := make([]string, 0, found.Length())
	for i := range found.Nodes {
		one := found.Eq(i)
		if shown {
			parts = append(parts, shownText(one, []string{"script", "style", "noscript"}))
			continue
		}
		source, err := goquery.OuterHtml(one)
		if err != nil {
			return nil, fmt.Errorf("write the elements of selector %q: %w", selector, err)
		}
		parts = append(parts, source)
	}
	return parts, nil
}
