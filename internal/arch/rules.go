package arch

// Module is the import path of this module.
const Module = "github.com/reprise-engine/reprise"

// CommandLines is the most a package below cmd may have.
const CommandLines = 80

// Rules are the import rules of this repository.
var Rules = []Rule{
	{
		Package: "pkg/workflow", Only: []string{},
		Reason: "the document is the innermost package; everything else imports it",
	},
	{
		Package: "pkg/engine", Only: []string{"pkg/workflow"},
		Reason: "the state machine knows the document and nothing else, so that it can be tested and replayed as data",
	},
	{
		Package: "pkg/engine",
		Never: []string{
			"os/...", "net/...", "io/fs", "syscall", "math/rand/...", "crypto/rand", "context", "log/...",
			"go.uber.org/zap/...", "github.com/google/uuid",
		},
		Reason: "the engine has no I/O, no randomness, no context and no log; time and ids come in with events",
	},
	{
		Package: "pkg/javascript", Only: []string{},
		Reason: "the JavaScript engine knows nothing of workflows, so that it can be replaced",
	},
	{
		Package: "pkg/expression/...", Only: []string{"pkg/workflow", "pkg/javascript", "pkg/expression/..."},
		Reason: "an expression is evaluated on what its Scope gives, wherever the node runs",
	},
	{
		Package: "pkg/table", Only: []string{},
		Reason: "what a request makes of a data table is known without a store and without a network",
	},
	{
		Package: "pkg/node", Only: []string{"pkg/workflow", "pkg/engine", "pkg/table"},
		Reason: "the SDK is what node authors compile against: contracts only, no technology",
	},
	{
		Package: "pkg/credential", Only: []string{},
		Reason: "what a credential adds to a request is known without workflows, so that the command line can try one",
	},
	{
		Package: "pkg/nodes/...", Never: []string{"pkg/state/...", "pkg/queue/...", "github.com/redis/...", "github.com/nats-io/..."},
		Reason: "node code runs in a worker, in the coordinator and in tests alike; what it needs comes with its Call",
	},
	{
		Package: "pkg/state/...", Only: []string{"pkg/workflow", "pkg/engine", "pkg/table", "pkg/state/..."},
		Reason: "one package per technology: Redis knows executions and not how jobs travel",
	},
	{
		Package: "pkg/state/...", Never: []string{"pkg/queue/...", "github.com/nats-io/..."}, Tests: true,
		Reason: "state and queue never meet; the services in internal join them",
	},
	{
		Package: "pkg/queue/...", Only: []string{"pkg/workflow", "pkg/engine", "pkg/node", "pkg/table", "pkg/queue/..."},
		Reason: "one package per technology: NATS carries messages and does not know where they rest",
	},
	{
		Package: "pkg/queue/...", Never: []string{"pkg/state/...", "github.com/redis/..."}, Tests: true,
		Reason: "state and queue never meet; the services in internal join them",
	},
	{
		Package: "pkg/...", Never: []string{"internal/...", "cmd/..."},
		Reason: "pkg is what others build on; it cannot lean on a program's insides",
	},
	{
		Package: "internal/worker", Never: []string{"pkg/state/...", "github.com/redis/..."},
		Reason: "a worker has no way to Redis: it must run where Redis cannot be reached",
	},
	{
		Package: "internal/runner", Never: []string{"pkg/state/...", "github.com/redis/..."},
		Reason: "the runner runs in workers, and a worker has no way to Redis",
	},
	{
		Package: "internal/isolation", Only: []string{"pkg/expression", "pkg/javascript"},
		Reason: "a process that runs scripts knows how, and nothing of workflows, servers or secrets",
	},
	{
		Package: "internal/telemetry", Never: []string{"pkg/state/...", "github.com/redis/..."},
		Reason: "workers are observed too, and a worker has no way to Redis; what has to be asked there comes as a function",
	},
	{
		Package: "internal/trigger", Never: []string{"internal/coordinator", "internal/worker", "github.com/redis/...", "github.com/nats-io/..."},
		Reason: "triggers submit and ask like any client, so that it does not matter which coordinator runs what they begin",
	},
	{
		Package: "cmd/...", Only: []string{"internal/..."},
		Reason: "a main package starts a program from internal and does nothing itself",
	},
}
