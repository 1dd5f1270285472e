package imap

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	goimap "github.com/emersion/go-imap/v2"
)

// flags that rules name, and whether a mail has them.
var flagRules = map[string]goimap.Flag{
	"SEEN": goimap.FlagSeen, "ANSWERED": goimap.FlagAnswered, "DELETED": goimap.FlagDeleted, "DRAFT": goimap.FlagDraft, "FLAGGED": goimap.FlagFlagged,
}

// ruleDates are the forms in which rules write dates.
var ruleDates = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02", "January 2, 2006", "Jan 2, 2006", "2-Jan-2006", "2 Jan 2006", "2006/01/02", "01/02/2006", time.RFC1123Z, time.RFC1123,
}

// readRules reads "Custom Email Rules": a JSON list of rules that all hold, as the library node-imap
// has them: "UNSEEN", "!SEEN", ["SINCE", "May 20, 2025"], ["OR", rule, rule].
func readRules(text string) (*goimap.SearchCriteria, error) {
	var rules []any
	if err := json.Unmarshal([]byte(text), &rules); err != nil {
		return nil, fmt.Errorf("the custom email rules are no JSON list: %w", err)
	}
	all := &goimap.SearchCriteria{}
	for _, rule := range rules {
		one, err := readRule(rule)
		if err != nil {
			return nil, err
		}
		all.And(one)
	}
	return all, nil
}

func readRule(rule any) (*goimap.SearchCriteria, error) {
	list, ok := rule.([]any)
	if !ok {
		list = []any{rule}
	}
	if len(list) == 0 {
		return &goimap.SearchCriteria{}, nil
	}
	name, ok := list[0].(string)
	if !ok {
		return nil, fmt.Errorf("the rule %v begins with no word", list)
	}
	name = strings.ToUpper(strings.TrimSpace(name))
	if rest, negated := strings.CutPrefix(name, "!"); negated {
		list = append([]any{rest}, list[1:]...)
		one, err := readRule(list)
		if err != nil {
			return nil, err
		}
		return &goimap.SearchCriteria{Not: []goimap.SearchCriteria{*one}}, nil
	}
	if name == "OR" {
		if len(list) != 3 {
			return nil, fmt.Errorf("the rule OR wants two rules, got %d", len(list)-1)
		}
		a, err := readRule(list[1])
		if err != nil {
			return nil, err
		}
		b, err := readRule(list[2])
		if err != nil {
			return nil, err
		}
		return &goimap.SearchCriteria{Or: [][2]goimap.SearchCriteria{{*a, *b}}}, nil
	}
	var words []string
	for _, word := range list[1:] {
		words = append(words, fmt.Sprint(word))
	}
	return plainRule(name, words)
}

// arguments of rules that have any.
var arguments = map[string]int{
	"KEYWORD": 1, "UNKEYWORD": 1, "FROM": 1, "TO": 1, "CC": 1, "BCC": 1, "SUBJECT": 1, "BODY": 1, "TEXT": 1, "HEADER": 2,
	"SINCE": 1, "BEFORE": 1, "ON": 1, "SENTSINCE": 1, "SENTBEFORE": 1, "SENTON": 1, "LARGER": 1, "SMALLER": 1,
}

func plainRule(name string, words []string) (*goimap.SearchCriteria, error) {
	c := &goimap.SearchCriteria{}
	if name == "UID" {
		return c, uidRule(c, words)
	}
	if want := arguments[name]; len(words) != want {
		return nil, fmt.Errorf("the rule %s wants %d values, got %d", name, want, len(words))
	}
	if flag, ok := flagRules[name]; ok {
		c.Flag = []goimap.Flag{flag}
		return c, nil
	}
	if flag, ok := flagRules[strings.TrimPrefix(name, "UN")]; ok {
		c.NotFlag = []goimap.Flag{flag}
		return c, nil
	}
	switch name {
	case "ALL":
	case "KEYWORD":
		c.Flag = []goimap.Flag{goimap.Flag(words[0])}
	case "UNKEYWORD":
		c.NotFlag = []goimap.Flag{goimap.Flag(words[0])}
	case "FROM", "TO", "CC", "BCC", "SUBJECT":
		c.Header = []goimap.SearchCriteriaHeaderField{{Key: name[:1] + strings.ToLower(name[1:]), Value: words[0]}}
	case "HEADER":
		c.Header = []goimap.SearchCriteriaHeaderField{{Key: words[0], Value: words[1]}}
	case "BODY":
		c.Body = words
	case "TEXT":
		c.Text = words
	case "LARGER", "SMALLER":
		size, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the rule %s wants a number of bytes, got %q", name, words[0])
		}
		if c.Larger = size; name == "SMALLER" {
			c.Larger, c.Smaller = 0, size
		}
	case "SINCE", "BEFORE", "ON", "SENTSINCE", "SENTBEFORE", "SENTON":
		return c, dateRule(c, name, words[0])
	default:
		return nil, fmt.Errorf("the rule %s is not known here", name)
	}
	return c, nil
}

func dateRule(c *goimap.SearchCriteria, name, text string) error {
	var day time.Time
	for _, layout := range ruleDates {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			day = t
			break
		}
	}
	if day.IsZero() {
		return fmt.Errorf("the rule %s wants a date such as May 20, 2025, got %q", name, text)
	}
	switch name {
	case "SINCE":
		c.Since = day
	case "BEFORE":
		c.Before = day
	case "ON":
		c.Since, c.Before = day, day.AddDate(0, 0, 1)
	case "SENTSINCE":
		c.SentSince = day
	case "SENTBEFORE":
		c.SentBefore = day
	case "SENTON":
		c.SentSince, c.SentBefore = day, day.AddDate(0, 0, 1)
	}
	return nil
}

// uidRule reads numbers of mails and ranges such as "5:*".
func uidRule(c *goimap.SearchCriteria, words []string) error {
	var set goimap.UIDSet
	for _, word := range strings.FieldsFunc(strings.Join(words, ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		from, to, isRange := strings.Cut(word, ":")
		if !isRange {
			to = from
		}
		var ends [2]goimap.UID // 0 is "*"
		for i, text := range []string{from, to} {
			if text == "*" {
				continue
			}
			n, err := strconv.ParseUint(text, 10, 32)
			if err != nil || n == 0 {
				return fmt.Errorf("the rule UID wants numbers and ranges such as 5:*, got %q", word)
			}
			ends[i] = goimap.UID(n)
		}
		set.AddRange(ends[0], ends[1])
	}
	if len(set) == 0 {
		return fmt.Errorf("the rule UID names no mail")
	}
	c.UID = []goimap.UIDSet{set}
	return nil
}
