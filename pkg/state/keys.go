package state

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Shards is the number of shards. It is part of the stored format.
const Shards = 256

// ShardOf returns the shard of an execution, or of a memory session.
func ShardOf(id string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32() % Shards)
}

// The keys, with the default prefix:
//
//	reprise:{sNNN}:<execution>:meta    hash   the engine's meta fields, and ours (below)
//	reprise:{sNNN}:<execution>:stack   hash   the engine's tables
//	reprise:{sNNN}:<execution>:run     hash
//	reprise:{sNNN}:<execution>:open    hash
//	reprise:{sNNN}:active              zset   unfinished and unsettled executions by next sweep (ms)
//	reprise:{sNNN}:timers              zset   "<execution>|<timer>" by due time (ms)
//	reprise:{sNNN}:questions           zset   tokens of open questions by the time they were asked (ms)
//	reprise:{sNNN}:finished            zset   finished executions by end (ms)
//	reprise:{sNNN}:index:<status>      zset   executions of this status by start (ms)
//	reprise:{wNNN}:gate:<workflow>:in  zset   executions that hold a place of a workflow, by when they got it (ms;
//	                                          negative while nobody has said that they began)
//	reprise:{wNNN}:gate:<workflow>:queue  zset  executions that wait for a place, in order
//	reprise:{wNNN}:gates               hash   workflow -> its limit, of the gates that have anybody
//	reprise:{mNNN}:memory:<session>    list   messages of a chat, oldest first
//	reprise:{mNNN}:memory:<session>:ids  zset  ids of the last appends, by order
//	reprise:{tables}:list              hash   table id -> table.Table (JSON)
//	reprise:{tables}:names             hash   table name -> its id
//	reprise:{tables}:done:<key>        string the table that a request created, renamed or dropped
//	reprise:{t-<table>}:head           hash   version, last row id, and gone when it was dropped
//	reprise:{t-<table>}:rows           hash   row id -> its values (JSON)
//	reprise:{t-<table>}:log            list   the rows of the last changes, newest first
//	reprise:{t-<table>}:done:<key>     string what a request has done to the rows, and was answered
//	reprise:workflow:<hash>            string the workflow document
//	reprise:workflows                  hash   workflow id -> WorkflowRecord (JSON)
//	reprise:workflows-revision         string counts the changes of reprise:workflows
//	reprise:secret:<name>              string a key that all processes share
//	reprise:slot:<trigger>             string the last moment of a trigger that was taken: Slot (JSON)
//	reprise:lease:<name>               hash   holder, until (ms), and note of a lease
//	reprise:turn:<name>                string whoever does <name> in this interval has set it
//
// An execution is in exactly one index; a finished one is in finished too, and while it is
// unsettled also in active. One that ended quietly is in none of them. Ids hold no colon, so that execution
// keys and shard keys cannot meet.

// Our own fields of the meta hash. The engine's field names never begin with "~".
const (
	fieldVersion      = "~v"  // number of commits so far
	fieldStatus       = "~s"  // engine.Status
	fieldStarted      = "~st" // ms
	fieldStopped      = "~sp" // ms, once finished
	fieldMoved        = "~m"  // ms, when its state last changed
	fieldWorkflowID   = "~wi"
	fieldWorkflowName = "~wn"
	fieldToken        = "~t" // + version modulo tokens: the token that led to this version

	reserved = '~'
	// tokens is how many commits an execution remembers the tokens of. It is part
	// of the stored format (and of the commit script).
	tokens = 8
)

// tokenFields of all remembered commits.
var tokenFields = func() (f [tokens]string) {
	for i := range f {
		f[i] = fieldToken + strconv.Itoa(i)
	}
	return f
}()

// shardKeys are the keys of a shard. They are made once per Store: formatting
// them would be a good part of a small commit.
type shardKeys struct {
	base      string // up to the execution's id
	active    string
	timers    string
	questions string
	finished  string
	index     map[engine.Status]string
}

// statuses in the order in which lists are merged.
var statuses = []engine.Status{
	engine.StatusNew, engine.StatusRunning, engine.StatusWaiting, engine.StatusSuccess, engine.StatusError, engine.StatusCanceled,
}

func newShardKeys(prefix string) *[Shards]shardKeys {
	var all [Shards]shardKeys
	for n := range all {
		base := fmt.Sprintf("%s:{s%03d}:", prefix, n)
		k := shardKeys{
			base: base, active: base + "active", timers: base + "timers", questions: base + "questions",
			finished: base + "finished", index: map[engine.Status]string{},
		}
		for _, s := range statuses {
			k.index[s] = base + "index:" + string(s)
		}
		all[n] = k
	}
	return &all
}

// tables in the order in which scripts take their keys.
var tables = [...]engine.Table{engine.TableMeta, engine.TableStack, engine.TableRun, engine.TableOpen}

// table returns the key of one of an execution's hashes.
func (k *shardKeys) table(id engine.ExecutionID, t engine.Table) string {
	return k.base + string(id) + ":" + string(t)
}

func (s *Store) shard(id engine.ExecutionID) *shardKeys { return &s.keys[ShardOf(string(id))] }

func (s *Store) workflowKey(hash string) string { return s.prefix + ":workflow:" + hash }

func (s *Store) namedWorkflowsKey() string { return s.prefix + ":workflows" }

func (s *Store) workflowsRevisionKey() string { return s.prefix + ":workflows-revision" }

func (s *Store) secretKey(name string) string { return s.prefix + ":secret:" + name }

func (s *Store) slotKey(trigger string) string { return s.prefix + ":slot:" + trigger }

func (s *Store) leaseKey(name string) string { return s.prefix + ":lease:" + name }

func (s *Store) memoryKeys(session string) (messages, ids string) {
	messages = fmt.Sprintf("%s:{m%03d}:memory:%s", s.prefix, ShardOf(session), session)
	return messages, messages + ":ids"
}

func (s *Store) tableListKey() string { return s.prefix + ":{tables}:list" }

func (s *Store) tableNamesKey() string { return s.prefix + ":{tables}:names" }

func (s *Store) tableNamedKey(request string) string { return s.prefix + ":{tables}:done:" + request }

// tableKeys are the keys of a table's rows, and of what a request has done to them.
func (s *Store) tableKeys(id, request string) []string {
	base := s.prefix + ":{t-" + id + "}:"
	return []string{base + "head", base + "rows", base + "log", base + "done:" + request}
}

// checkID refuses an id that could not be part of a key.
func checkID(id engine.ExecutionID) error {
	if id == "" || len(id) > 128 {
		return fmt.Errorf("execution id %q: must have 1 to 128 characters", id)
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("execution id %q: only letters, digits, \"-\" and \"_\" are allowed", id)
		}
	}
	return nil
}
