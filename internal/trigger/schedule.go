package trigger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// schedule is one rule of a trigger node: the moments at which it begins executions.
type schedule struct {
	*source
	node *workflow.Node
	rule int // its index in the node
	zone *time.Location
	cron cron.Schedule
	// every keeps each n-th moment only, counted from the first after the activation.
	every int
	// poll: the node itself looks for something new at each moment, in a worker.
	poll bool
}

// next is the first moment after t; zero when there is none.
func (s *schedule) next(t time.Time) time.Time {
	if s.every <= 1 {
		return s.cron.Next(t)
	}
	// Which moments count follows from the activation, so all processes find the same.
	first := time.UnixMilli(s.activatedAt).In(s.zone)
	at := s.cron.Next(first)
	for n := 0; !at.IsZero() && n < maxSteps; n++ {
		if at.After(t) && n%s.every == 0 {
			return at
		}
		at = s.cron.Next(at)
	}
	return time.Time{}
}

// maxSteps bounds the search: hours for more than ten years.
const maxSteps = 100_000

// latest is the last moment in (from, to]; zero when there is none.
func (s *schedule) latest(from, to time.Time) time.Time {
	var last time.Time
	for n := 0; n < maxSteps; n++ {
		from = s.next(from)
		if from.IsZero() || from.After(to) {
			break
		}
		last = from
	}
	return last
}

// interval is a schedule of moments that are a duration apart, counted from 1970.
type interval time.Duration

// Next implements cron.Schedule.
func (i interval) Next(t time.Time) time.Time {
	d := time.Duration(i)
	return time.Unix(0, (t.UnixNano()/int64(d)+1)*int64(d)).In(t.Location())
}

var cronParser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// schedulesOf reads the schedules of a workflow's triggers.
func schedulesOf(ctx context.Context, e Evaluator, s *source) ([]*schedule, error) {
	zone := time.UTC
	if name := s.workflow.Settings.Timezone; name != "" && name != "DEFAULT" {
		var err error
		if zone, err = time.LoadLocation(name); err != nil {
			return nil, fmt.Errorf("the workflow's time zone %q is unknown", name)
		}
	}
	var all []*schedule
	for _, n := range s.workflow.Nodes {
		if n.Disabled {
			continue
		}
		p := parametersOf(ctx, e, s.workflow, n, nil)
		var rules []gjson.Result
		var read func(gjson.Result) (cron.Schedule, int, error)
		switch n.Type {
		case typeSchedule:
			rules, read = p.get("rule.interval").Array(), scheduleRule
			if len(rules) == 0 {
				rules = []gjson.Result{gjson.Parse("{}")} // every day at midnight
			}
		case typeCron:
			rules, read = p.get("triggerTimes.item").Array(), cronRule
		case typeInterval:
			rules, read = []gjson.Result{gjson.ParseBytes(n.Parameters)}, intervalRule
		case typeFeed, typeMailbox:
			rules, read = p.get("pollTimes.item").Array(), cronRule
			if len(rules) == 0 {
				rules = []gjson.Result{gjson.Parse(`{"mode":"everyMinute"}`)}
			}
		default:
			continue
		}
		if p.err != nil {
			return nil, p.err
		}
		if len(rules) == 0 {
			return nil, fmt.Errorf("node %q says no time", n.Name)
		}
		for i, rule := range rules {
			times, every, err := read(rule)
			if err != nil {
				return nil, fmt.Errorf("node %q, rule %d: %w", n.Name, i+1, err)
			}
			all = append(all, &schedule{source: s, node: n, rule: i, zone: zone, cron: times, every: every, poll: polls(n.Type)})
		}
	}
	return all, nil
}

// number of a field, bounded.
func number(rule gjson.Result, name string, fallback, least, most int) (int, error) {
	v := rule.Get(name)
	if !v.Exists() || v.Type == gjson.Null || v.String() == "" {
		return fallback, nil
	}
	n := int(v.Int())
	if n < least || n > most {
		return 0, fmt.Errorf("%s is %s; want %d to %d", name, v.String(), least, most)
	}
	return n, nil
}

// scheduleRule reads one rule of a Schedule Trigger: moments, of which each n-th counts.
func scheduleRule(rule gjson.Result) (cron.Schedule, int, error) {
	field := rule.Get("field").String()
	if field == "" {
		field = "days"
	}
	if field == "cronExpression" {
		times, err := parseCron(rule.Get("expression").String())
		return times, 1, err
	}
	minute, err1 := number(rule, "triggerAtMinute", 0, 0, 59)
	hour, err2 := number(rule, "triggerAtHour", 0, 0, 23)
	every, err3 := number(rule, field+"Interval", defaultInterval(field), 1, 10_000)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, 0, err
	}
	switch field {
	case "seconds":
		return spread(every, 60, time.Second)
	case "minutes":
		return spread(every, 60, time.Minute)
	case "hours":
		times, err := parseCron(fmt.Sprintf("%d * * * *", minute))
		return times, every, err
	case "days":
		times, err := parseCron(fmt.Sprintf("%d %d * * *", minute, hour))
		return times, every, err
	case "weeks":
		var days []string
		for _, day := range rule.Get("triggerAtDay").Array() {
			days = append(days, fmt.Sprint(day.Int()%7))
		}
		if len(days) == 0 {
			days = []string{"0"}
		}
		times, err := parseCron(fmt.Sprintf("%d %d * * %s", minute, hour, strings.Join(days, ",")))
		if err == nil && every > 1 {
			times = weeks{times, every}
		}
		return times, 1, err
	case "months":
		day, err := number(rule, "triggerAtDayOfMonth", 1, 1, 31)
		if err != nil {
			return nil, 0, err
		}
		times, err := parseCron(fmt.Sprintf("%d %d %d * *", minute, hour, day))
		return times, every, err
	}
	return nil, 0, fmt.Errorf("the interval %q is unknown", field)
}

func defaultInterval(field string) int {
	switch field {
	case "seconds":
		return 30
	case "minutes":
		return 5
	}
	return 1
}

// spread is every n units: at the beginning of the next greater unit and then each n, as n8n does
// it, or evenly for ever when n is greater than that.
func spread(n, most int, unit time.Duration) (cron.Schedule, int, error) {
	if n >= most {
		return interval(time.Duration(n) * unit), 1, nil
	}
	expression := fmt.Sprintf("0 */%d * * * *", n)
	if unit == time.Second {
		expression = fmt.Sprintf("*/%d * * * * *", n)
	}
	times, err := parseCron(expression)
	return times, 1, err
}

// weeks keeps the moments of each n-th week, counted from the first Monday of 1970.
type weeks struct {
	days  cron.Schedule
	every int
}

// Next implements cron.Schedule.
func (w weeks) Next(t time.Time) time.Time {
	for range 7 * 53 * 10 {
		if t = w.days.Next(t); t.IsZero() {
			break
		}
		_, offset := t.Zone()
		if (t.Unix()+int64(offset)-4*86400)/(7*86400)%int64(w.every) == 0 {
			return t
		}
	}
	return time.Time{}
}

func parseCron(expression string) (cron.Schedule, error) {
	expression = strings.TrimSpace(expression)
	if strings.Contains(expression, "TZ=") {
		return nil, errors.New("the time zone belongs to the workflow's settings")
	}
	times, err := cronParser.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("cron expression %q: %w", expression, err)
	}
	return times, nil
}

// cronRule reads one time of a Cron node, the Schedule Trigger's predecessor.
func cronRule(rule gjson.Result) (cron.Schedule, int, error) {
	minute, err1 := number(rule, "minute", 0, 0, 59)
	hour, err2 := number(rule, "hour", 14, 0, 23)
	if err := errors.Join(err1, err2); err != nil {
		return nil, 0, err
	}
	var text string
	switch mode := rule.Get("mode").String(); mode {
	case "everyMinute":
		text = "* * * * *"
	case "everyHour":
		text = fmt.Sprintf("%d * * * *", minute)
	case "", "everyDay":
		text = fmt.Sprintf("%d %d * * *", minute, hour)
	case "everyWeek":
		day, err := number(rule, "weekday", 1, 0, 7)
		if err != nil {
			return nil, 0, err
		}
		text = fmt.Sprintf("%d %d * * %d", minute, hour, day%7)
	case "everyMonth":
		day, err := number(rule, "dayOfMonth", 1, 1, 31)
		if err != nil {
			return nil, 0, err
		}
		text = fmt.Sprintf("%d %d %d * *", minute, hour, day)
	case "everyX":
		n, err := number(rule, "value", 2, 1, 10_000)
		if err != nil {
			return nil, 0, err
		}
		if rule.Get("unit").String() == "minutes" {
			return spread(n, 60, time.Minute)
		}
		times, err := parseCron("0 * * * *")
		return times, n, err
	case "custom":
		text = rule.Get("cronExpression").String()
	default:
		return nil, 0, fmt.Errorf("the mode %q is unknown", mode)
	}
	times, err := parseCron(text)
	return times, 1, err
}

// intervalRule reads an Interval node.
func intervalRule(rule gjson.Result) (cron.Schedule, int, error) {
	n, err := number(rule, "interval", 1, 1, 1_000_000)
	unit := time.Second
	switch rule.Get("unit").String() {
	case "minutes":
		unit = time.Minute
	case "hours":
		unit = time.Hour
	}
	return interval(time.Duration(n) * unit), 1, err
}
