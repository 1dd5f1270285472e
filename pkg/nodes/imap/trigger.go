package imap

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/poll"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// maxMails bounds the mails that one execution begins with; the others wait for the next poll.
const maxMails = 50

// mark is what a poll leaves for the next.
type mark struct {
	// Validity of the numbers: when a mailbox has another one, they mean other mails.
	Validity uint32 `json:"validity"`
	// Last is the highest number that was given out.
	Last goimap.UID `json:"last,omitempty"`
	// Found was given out by the poll that left this. Given is what was given out and still matches, where
	// that is looked at.
	Found []goimap.UID `json:"found,omitempty"`
	Given []goimap.UID `json:"given,omitempty"`
}

// settings are a node's parameters.
type settings struct {
	mailbox, format string
	rules           *goimap.SearchCriteria
	markRead        bool
	onlyNew         bool // look behind the last one only
	attachments     bool
	prefix          string // of the names of attachments
}

func readSettings(ctx context.Context, call *node.Call) (*settings, error) {
	s := &settings{}
	var err error
	text := func(path, fallback string) string {
		value := fallback
		if err == nil {
			value, err = call.String(ctx, 0, path, fallback)
		}
		return value
	}
	flag := func(path string, fallback bool) bool {
		value := fallback
		if err == nil {
			value, err = call.Bool(ctx, 0, path, fallback)
		}
		return value
	}
	s.mailbox, s.format = text("mailbox", "INBOX"), text("format", "simple")
	action := text("postProcessAction", "read")
	s.markRead = action == "read"
	s.attachments, s.prefix = flag("downloadAttachments", false), text("dataPropertyAttachmentsPrefixName", "attachment_")
	s.onlyNew = flag("options.trackLastMessageId", true)
	rules := text("options.customEmailConfig", "")
	if err != nil {
		return nil, err
	}
	if rules == "" {
		rules = `["UNSEEN"]`
	}
	if s.rules, err = readRules(rules); err != nil {
		return nil, node.OperationError(-1, err.Error(), "Set the option \"Custom Email Rules\" to a list such as [\"UNSEEN\", [\"SINCE\", \"May 20, 2025\"]].")
	}
	switch {
	case s.format != "simple" && s.format != "resolved" && s.format != "raw":
		return nil, node.OperationError(-1, fmt.Sprintf("The format %q is unknown", s.format), "Choose simple, resolved or raw.")
	case action != "read" && action != "nothing":
		return nil, node.OperationError(-1, fmt.Sprintf("The action %q is unknown", action), "Choose read or nothing.")
	}
	return s, nil
}

func execute(ctx context.Context, call *node.Call) (*node.Result, error) {
	set, err := readSettings(ctx, call)
	if err != nil {
		return nil, err
	}
	s, err := findServer(ctx, call)
	if err != nil {
		return nil, err
	}
	if trust, err := call.Bool(ctx, 0, "options.allowUnauthorizedCerts", false); err != nil {
		return nil, err
	} else if trust {
		s.trustAny = true
	}
	var history *poll.History
	if !poll.ByHand(call) {
		if history, err = poll.Load(ctx, call); err != nil {
			return nil, err
		}
	}
	c, err := s.connect(ctx)
	if err != nil {
		return nil, stopped(ctx, err)
	}
	defer c.close()
	box, err := c.Select(set.mailbox, &goimap.SelectOptions{ReadOnly: history == nil || !set.markRead}).Wait()
	if err != nil {
		return nil, stopped(ctx, s.failure(fmt.Sprintf("the mailbox %q cannot be opened", set.mailbox), err))
	}
	m := &mailbox{connection: c, settings: set, validity: box.UIDValidity, call: call}
	result, err := m.poll(ctx, history)
	if err != nil {
		return nil, stopped(ctx, s.failure("the mails cannot be read", err))
	}
	return result, nil
}

// stopped is the end of the context when that is why something failed.
func stopped(ctx context.Context, err error) error {
	return cmp.Or(ctx.Err(), err)
}

// mailbox is one that is open.
type mailbox struct {
	*connection
	*settings
	validity uint32
	call     *node.Call
}

func (m *mailbox) poll(ctx context.Context, history *poll.History) (*node.Result, error) {
	if history == nil { // a person tries the workflow: the latest mail is an example
		found, err := m.search(m.rules)
		if err != nil {
			return nil, err
		}
		items, err := m.items(ctx, found[max(0, len(found)-1):])
		return node.Outputs(items), err
	}
	var before, own mark
	if err := readMark(history.Mark, &before); err != nil {
		return nil, err
	}
	if err := readMark(history.OwnMark, &own); err != nil {
		return nil, err
	}
	if history.Again && own.Validity == m.validity {
		return m.result(ctx, history, own)
	}
	if before.Validity != m.validity {
		before = mark{}
	}
	// What the poll before gave out is stored with its execution by now.
	if m.markRead && len(before.Found) > 0 {
		flags := &goimap.StoreFlags{Op: goimap.StoreFlagsAdd, Silent: true, Flags: []goimap.Flag{goimap.FlagSeen}}
		if err := m.Store(goimap.UIDSetNum(before.Found...), flags, nil).Close(); err != nil {
			return nil, fmt.Errorf("mark mails as read: %w", err)
		}
	}
	rules := *m.rules
	if m.onlyNew && before.Last > 0 {
		var behind goimap.UIDSet
		behind.AddRange(before.Last+1, 0)
		rules.And(&goimap.SearchCriteria{UID: []goimap.UIDSet{behind}})
	}
	matching, err := m.search(&rules)
	if err != nil {
		return nil, err
	}
	after := mark{Validity: m.validity, Last: before.Last}
	for _, uid := range matching {
		switch {
		case m.onlyNew && uid <= before.Last: // "5:*" names the last one also when its number is smaller
		case !m.onlyNew && (slices.Contains(before.Given, uid) || slices.Contains(before.Found, uid)):
			after.Given = append(after.Given, uid)
		case len(after.Found) < maxMails:
			after.Found, after.Last = append(after.Found, uid), max(after.Last, uid)
		}
	}
	if len(after.Found) == 0 && len(before.Found) == 0 && slices.Equal(after.Given, before.Given) && !history.First && before.Validity == m.validity {
		return poll.Nothing(), nil
	}
	return m.result(ctx, history, after)
}

func readMark(raw json.RawMessage, into *mark) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read what the last poll left: %w", err)
	}
	return nil
}

// result gives out what a mark says was found.
func (m *mailbox) result(ctx context.Context, history *poll.History, after mark) (*node.Result, error) {
	items, err := m.items(ctx, after.Found)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, uid := range after.Found {
		keys = append(keys, strconv.FormatUint(uint64(m.validity), 10)+":"+strconv.FormatUint(uint64(uid), 10))
	}
	return history.Result(items, keys, nil, after)
}

// search returns the numbers of the mails that match, in order.
func (m *mailbox) search(rules *goimap.SearchCriteria) ([]goimap.UID, error) {
	data, err := m.UIDSearch(rules, nil).Wait()
	if err != nil {
		return nil, fmt.Errorf("search mails: %w", err)
	}
	found := data.AllUIDs()
	slices.Sort(found)
	return found, nil
}

// items reads mails, without marking them. One that is gone by now is left out.
func (m *mailbox) items(ctx context.Context, uids []goimap.UID) (workflow.Items, error) {
	section := &goimap.FetchItemBodySection{Peek: true}
	var items workflow.Items
	for _, uid := range uids {
		got, err := m.Fetch(goimap.UIDSetNum(uid), &goimap.FetchOptions{UID: true, BodySection: []*goimap.FetchItemBodySection{section}}).Collect()
		if err != nil {
			return nil, fmt.Errorf("fetch a mail: %w", err)
		}
		for _, message := range got {
			item, err := m.item(ctx, uid, message.FindBodySection(section))
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
	}
	return items, nil
}
