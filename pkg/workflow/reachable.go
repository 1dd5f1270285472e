package workflow

// Reachable are the nodes that an execution can get to from a trigger: over main
// connections, and what is attached to those.
func (w *Workflow) Reachable(c Catalog) map[string]bool { return w.reachable(c, "") }
