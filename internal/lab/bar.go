package lab

import "fmt"

// Bar is what a figure of a result is held to.
type Bar struct {
	Metric string // a JSON name of Result or of its Extra
	Op     Op
	Limit  float64
}

// Op compares a figure with a limit.
type Op string

const (
	AtLeast Op = ">="
	AtMost  Op = "<="
)

// Verdict is a Bar held against a result.
type Verdict struct {
	Metric string  `json:"metric"`
	Op     Op      `json:"op"`
	Limit  float64 `json:"limit"`
	Value  Figure  `json:"value"`
	Pass   bool    `json:"pass"` // false if there is no value
}

func (b Bar) judge(value Figure) Verdict {
	v := Verdict{Metric: b.Metric, Op: b.Op, Limit: b.Limit, Value: value}
	switch b.Op {
	case AtLeast:
		v.Pass = float64(value) >= b.Limit
	case AtMost:
		v.Pass = float64(value) <= b.Limit
	}
	return v
}

func (v Verdict) String() string {
	mark := "FAIL"
	if v.Pass {
		mark = "pass"
	}
	return fmt.Sprintf("%s %s %s %g (is %s)", mark, v.Metric, v.Op, v.Limit, v.Value.Format(4))
}
