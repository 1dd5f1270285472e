package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// answer is an error that Redis answered with.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

var _ redis.Error = answer("")

func TestKindsOfErrors(t *testing.T) {
	for text, kind := range map[string]error{
		"OOM command not allowed when used memory > 'maxmemory'. script: 4e1, on @user_script:10.":        ErrFull,
		"ERR Error running script (call to f_4e1): @user_script:3: -OOM command not allowed when used":    ErrFull,
		"LOADING Redis is loading the dataset in memory":                                                  ErrUnavailable,
		"READONLY You can't write against a read only replica.":                                           ErrUnavailable,
		"ERR Error running script (call to f_4e1): @user_script:3: -READONLY You can't write against a":   ErrUnavailable,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk": ErrUnavailable,
		"CLUSTERDOWN The cluster is down":                                                                 ErrUnavailable,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":          ErrUnavailable,
		"ERR max number of clients reached":                                                               ErrUnavailable,
		"NOAUTH Authentication required.":                                                                 ErrCredentials,
		"WRONGPASS invalid username-password pair or user is disabled.":                                   ErrCredentials,
		"NOPERM User reader has no permissions to run the 'evalsha' command":                              ErrCredentials,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                               nil,
	} {
		err := wrap(answer(text), "commit execution %s", "a")
		require.ErrorContains(t, err, "commit execution a: ")
		require.ErrorContains(t, err, text)
		for _, k := range []error{ErrFull, ErrUnavailable, ErrCredentials} {
			require.Equal(t, k == kind, errors.Is(err, k), "%s is %v", text, k)
		}
	}
	require.ErrorIs(t, wrap(io.EOF, "x"), ErrUnavailable)
	require.ErrorIs(t, wrap(io.EOF, "x"), io.EOF)
	canceled := wrap(fmt.Errorf("wait: %w", context.Canceled), "x")
	require.ErrorIs(t, canceled, context.Canceled)
	require.NotErrorIs(t, canceled, ErrUnavailable)
	require.NoError(t, wrap(nil, "x"))
}

// The shard of an id is part of the stored format.
func TestShardsAreStable(t *testing.T) {
	require.Equal(t, 256, Shards)
	for id, shard := range map[string]int{"": 197, "a": 44, "01234567-89ab-cdef-0123-456789abcdef": 21} {
		require.Equal(t, shard, ShardOf(id), "shard of %q", id)
	}
	used := map[int]int{}
	for i := range 25_600 {
		used[ShardOf(fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i))]++
	}
	require.Len(t, used, Shards)
	for shard, n := range used {
		require.InDelta(t, 100, n, 60, "shard %d", shard)
	}
}
