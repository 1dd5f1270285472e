package engine

// StackNames is the stack as people read it, top first: "Shout", or
// "AI Agent(resume: 2 results)".
func (s *State) StackNames() []string { return s.stackNames() }
