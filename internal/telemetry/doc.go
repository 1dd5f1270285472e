// Package telemetry shows operators what the services do: metrics for Prometheus and traces
// for OpenTelemetry.
//
// A service makes one Coordinator or Worker and passes it on. All methods may be called on nil,
// and then do nothing, so that the code which is observed has one line per event and no
// conditions. What is on the way of every job costs some atomic additions; what has to be asked
// for (the number of executions, the jobs that wait) is asked when somebody reads the metrics,
// and in Redis not more often than every CountEvery.
//
// # Labels
//
// Values of labels are bounded: statuses, reasons and codes are those that the program knows
// ("other" stands for the rest), node types those that are registered. Pools and models come from
// documents, so the first maxValues get a value of their own and the others share "other". There are no names
// of workflows and no ids.
//
// # Traces
//
// Ids are derived, not drawn (see ids.go): of the trace from the execution that began it, of
// the execution's span from its id, of a node's span from its job's id. So a span can name its parent
// whoever writes that one, whenever, and whatever crashes in between:
//
//	execution                        written by the coordinator that commits its end
//	  node run, one per job          by the worker that runs it; by a coordinator when it is given up
//	    model call, HTTP request     by the worker
//	  execution of a sub-workflow    in the trace of the first execution of its line
//
// Attributes hold names, ids and counts. What people and models say, and what tools get and return, is
// in them only with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true. Texts of errors may quote it, so they are
// in no attribute; error.type is.
package telemetry

//go:generate go test . -run TestOperationsPageListsAllMetrics -rewrite
