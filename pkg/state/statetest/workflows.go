package statetest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/state"
)

func workflowStored(t *testing.T, s Store) {
	_, err := s.Workflow(t.Context(), "abc")
	require.ErrorIs(t, err, state.ErrNotFound)
	require.NoError(t, s.PutWorkflow(t.Context(), "abc", []byte(`{"nodes":[]}`)))
	require.NoError(t, s.PutWorkflow(t.Context(), "abc", []byte(`{"nodes":[]}`)))
	got, err := s.Workflow(t.Context(), "abc")
	require.NoError(t, err)
	require.Equal(t, `{"nodes":[]}`, string(got))
	require.Error(t, s.PutWorkflow(t.Context(), "", []byte(`{}`)))
}

func workflowsNamed(t *testing.T, s Store) {
	list, err := s.NamedWorkflows(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = s.NamedWorkflow(t.Context(), "orders")
	require.ErrorIs(t, err, state.ErrNotFound)
	require.ErrorIs(t, s.DeleteNamedWorkflow(t.Context(), "orders"), state.ErrNotFound)

	// By id, bytewise.
	want := []state.WorkflowRecord{
		{ID: " ", Hash: "h0", UpdatedAt: 1},
		{ID: "Orders {1}: \"new\"\n", Name: "Bestellungen äöü", Hash: "h1", UpdatedAt: 1_700_000_000_000},
		{ID: "orders", Name: "Orders", Hash: "h2", UpdatedAt: 2},
		{ID: strings.Repeat("x", 256), Hash: "h3", UpdatedAt: 3},
		{ID: "日本", Hash: "h4", UpdatedAt: 4},
	}
	for _, i := range []int{3, 0, 4, 2, 1} {
		require.NoError(t, s.PutNamedWorkflow(t.Context(), want[i]))
	}
	list, err = s.NamedWorkflows(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, list)
	for _, r := range want {
		got, err := s.NamedWorkflow(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, r, got)
	}

	edited := state.WorkflowRecord{ID: "orders", Name: "Orders, edited", Hash: "h5", UpdatedAt: 9}
	require.NoError(t, s.PutNamedWorkflow(t.Context(), edited))
	got, err := s.NamedWorkflow(t.Context(), "orders")
	require.NoError(t, err)
	require.Equal(t, edited, got)

	require.NoError(t, s.DeleteNamedWorkflow(t.Context(), "orders"))
	require.ErrorIs(t, s.DeleteNamedWorkflow(t.Context(), "orders"), state.ErrNotFound)
	_, err = s.NamedWorkflow(t.Context(), "orders")
	require.ErrorIs(t, err, state.ErrNotFound)
	list, err = s.NamedWorkflows(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 4)

	for name, r := range map[string]state.WorkflowRecord{
		"no id": {Hash: "h"}, "long id": {ID: strings.Repeat("x", 257), Hash: "h"}, "no text": {ID: "\xff", Hash: "h"}, "no hash": {ID: "a"},
	} {
		require.Error(t, s.PutNamedWorkflow(t.Context(), r), name)
	}
}

// workflowsUpdated has several processes change one record at once: no change is lost.
func workflowsUpdated(t *testing.T, s Store) {
	refused := errors.New("no")
	_, err := s.UpdateNamedWorkflow(t.Context(), "a", func(*state.WorkflowRecord, bool) error { return refused })
	require.ErrorIs(t, err, refused)
	_, err = s.NamedWorkflow(t.Context(), "a")
	require.ErrorIs(t, err, state.ErrNotFound, "nothing was stored")
	const callers = 8
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			_, err := s.UpdateNamedWorkflow(t.Context(), "a", func(r *state.WorkflowRecord, found bool) error {
				if found != (r.Version > 0) || r.ID != "a" {
					return fmt.Errorf("found is %v for %+v", found, r)
				}
				r.Version++
				r.Hash, r.Active, r.ActivatedAt = "h", true, 5
				return nil
			})
			if err != nil {
				t.Errorf("update: %v", err)
			}
		})
	}
	wg.Wait()
	got, err := s.NamedWorkflow(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, state.WorkflowRecord{ID: "a", Hash: "h", Version: callers, Active: true, ActivatedAt: 5}, got)
	for name, change := range map[string]func(*state.WorkflowRecord, bool) error{
		"no hash":    func(r *state.WorkflowRecord, _ bool) error { r.Hash = ""; return nil },
		"another id": func(r *state.WorkflowRecord, _ bool) error { r.ID = "b"; return nil },
	} {
		_, err := s.UpdateNamedWorkflow(t.Context(), "a", change)
		require.Error(t, err, name)
	}
	_, err = s.UpdateNamedWorkflow(t.Context(), "", func(r *state.WorkflowRecord, _ bool) error { r.Hash = "h"; return nil })
	require.Error(t, err)
}

// secretsShared has several processes propose a value at once.
func secretsShared(t *testing.T, s Store) {
	const callers = 8
	proposed, got := map[string]bool{}, [callers][]byte{}
	var wg sync.WaitGroup
	for i := range callers {
		mine := make([]byte, 32)
		_, _ = rand.Read(mine)
		proposed[string(mine)] = true
		wg.Go(func() {
			value, err := s.Secret(t.Context(), "links", mine)
			if err != nil {
				t.Errorf("secret: %v", err)
			}
			got[i] = value
		})
	}
	wg.Wait()
	require.True(t, proposed[string(got[0])], "it is one of those that were proposed")
	for i := range got {
		require.Equal(t, got[0], got[i], "caller %d", i)
	}
	later, err := s.Secret(t.Context(), "links", []byte("another"))
	require.NoError(t, err)
	require.Equal(t, got[0], later)
	other, err := s.Secret(t.Context(), "other", []byte("\x00binary\xff"))
	require.NoError(t, err)
	require.Equal(t, "\x00binary\xff", string(other), "names are apart")
	for name, value := range map[string]string{"": "hunter2secret", "links": ""} {
		_, err = s.Secret(t.Context(), name, []byte(value))
		require.Error(t, err, fmt.Sprintf("name %q", name))
		require.NotContains(t, err.Error(), "hunter2secret")
	}
}
