package lab

import "time"

const (
	kilo = 1e3
	mega = 1e6
)

// bdp is the bytes a path holds: rate in bit/s times a time.
func bdp(rate float64, d time.Duration) int { return int(rate * d.Seconds() / 8) }

// Scenarios returns all named scenarios.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name:     "wan",
			Path:     PathConfig{Rate: 100 * mega, RTT: 80 * time.Millisecond, Buffer: bdp(100*mega, 80*time.Millisecond)},
			Duration: 60 * time.Second,
			Bars: []Bar{
				{"utilization", AtLeast, 0.97}, {"mean_queue_ms", AtMost, 5}, {"drops", AtMost, 0},
				{"time_to_90_s", AtMost, 1}, {"peak_startup_queue_ms", AtMost, 10},
			},
		},
	}
}

// bars returns what the scenario is held to, with what every scenario is held to.
func (s *Scenario) bars() []Bar {
	return append([]Bar{{"survived", AtLeast, 1}}, s.Bars...)
}
