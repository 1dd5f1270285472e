// Package bench measures what executions cost. Measure runs one of the scenarios of Catalog and
// returns its report, which people can read and which, as JSON, can be compared with another
// one (Compare) or put into a document (FillTables).
//
// The scenario "agent" runs coordinators and workers in this process, next to the floor: the
// same NATS and Redis traffic without an engine, on the same servers in the same run. Rates of
// different machines or minutes cannot be compared; their ratios to the floor can.
//
// The others run a fleet: coordinators, workers and NATS as processes of their own (Child), so that
// memory and CPU time are known by role and GOMAXPROCS means something. The model is a mock inside
// each worker that answers at once, or not before it is told to.
package bench
