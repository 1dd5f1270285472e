// Package bench measures how many agent executions per second coordinators
// and workers do, what one costs, and how that compares with the floor: the
// same NATS and Redis traffic without an engine, on the same servers in the
// same run. Rates of different machines or minutes cannot be compared; their
// ratios to the floor can.
package bench
