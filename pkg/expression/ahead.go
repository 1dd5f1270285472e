package expression

import "strings"

// Most nodes evaluate their expressions for one item after the other, and entering the VM costs several
// times what a short expression does. So an expression that was evaluated for two items in a row is
// evaluated for the next ones in the same call, and the answers wait here. An
// expression that may change more than data is never evaluated ahead, data that it may have changed
// is fetched anew for each item, failures belong to their item, and after a limit that was reached on the way
// each item is evaluated by itself. (What asks the clock or for a random number does so a little earlier.)
type session struct {
	programs map[uint64]*ahead
}

// ahead is what is known of a program in one VM.
type ahead struct {
	from    int // the item of the first answer
	answers []string
	next    int // the item that would be asked for next in a row
	width   int // of the last call
}

const (
	firstWidth = 8
	mostWidth  = 256
	// aheadBytes bounds the input that is held in a VM for items to come.
	aheadBytes = 512 << 10
)

func (s *session) of(p *program) *ahead {
	a := s.programs[p.id]
	if a == nil {
		if s.programs == nil {
			s.programs = map[uint64]*ahead{}
		}
		a = &ahead{next: -1}
		s.programs[p.id] = a
	}
	return a
}

// answer is what was found out before.
func (a *ahead) answer(item int) (string, bool) {
	if item < a.from || item >= a.from+len(a.answers) {
		return "", false
	}
	a.next = item + 1
	return a.answers[item-a.from], true
}

// plan is for how many items to evaluate the program now.
func (a *ahead) plan(s *Scope, p *program, item int) int {
	width := 1
	if item == a.next && !p.mutates && !p.alone.Load() {
		width = min(max(a.width*4, firstWidth), mostWidth)
	}
	a.next, a.width = item+1, width
	input := s.input()
	width = min(width, len(input)-item)
	if p.whole || p.items {
		bytes := 0
		for i := range max(width, 0) {
			if bytes += len(input[item+i].JSON); bytes > aheadBytes {
				width = i
				break
			}
		}
	}
	return max(width, 1)
}

// keep stores the answers from an item on and returns its own.
func (a *ahead) keep(item int, reply string) string {
	a.from, a.answers = item, strings.Split(reply, "\n") // JSON has no line breaks
	return a.answers[0]
}
