package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"net/mail"
	"strings"

	"github.com/reprise-engine/reprise/pkg/node"
)

// texts reads a parameter that is a list of texts: comma-separated, or a JSON list
// that an expression gave.
func texts(ctx context.Context, call *node.Call, item int, path string) ([]string, error) {
	value, err := call.Param(ctx, item, path)
	if err != nil || len(value) == 0 || string(value) == "null" {
		return nil, err
	}
	var list []string
	if json.Unmarshal(value, &list) == nil {
		return list, nil
	}
	text, err := call.String(ctx, item, path, "")
	return []string{text}, err
}

// addresses reads a parameter with mail addresses, "a@example.com, Ada <b@example.com>".
func addresses(ctx context.Context, call *node.Call, item int, path, what string) ([]*mail.Address, error) {
	list, err := texts(ctx, call, item, path)
	if err != nil {
		return nil, err
	}
	var found []*mail.Address
	for _, text := range list {
		for _, one := range splitAddresses(text) {
			address, err := parseAddress(one)
			if err != nil {
				return nil, operationError(fmt.Sprintf("%q is no mail address (%s)", one, what), "parameter "+path)
			}
			found = append(found, address)
		}
	}
	return found, nil
}

// splitAddresses splits at commas and semicolons outside of quotes and angle
// brackets.
func splitAddresses(text string) []string {
	var list []string
	var quoted, angle, escaped bool
	start := 0
	add := func(end int) {
		if one := strings.TrimSpace(text[start:end]); one != "" {
			list = append(list, one)
		}
		start = end + 1
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case escaped:
			escaped = false
		case c == '\\' && quoted:
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '<':
			angle = true
		case c == '>':
			angle = false
		case (c == ',' || c == ';') && !angle:
			add(i)
		}
	}
	add(len(text))
	return list
}

// parseAddress also takes names that should be in quotes and are not, as
// "Dr. Ada L. <ada@example.com>".
func parseAddress(text string) (*mail.Address, error) {
	address, err := mail.ParseAddress(text)
	if err == nil {
		return address, nil
	}
	open := strings.LastIndexByte(text, '<')
	if open < 0 || !strings.HasSuffix(text, ">") {
		return nil, err
	}
	if address, err = mail.ParseAddress(text[open:]); err != nil {
		return nil, err
	}
	address.Name = strings.Join(strings.Fields(strings.Trim(strings.TrimSpace(text[:open]), `"`)), " ")
	return address, nil
}
