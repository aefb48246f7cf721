package cc

import "time"

// State is the phase of a controller.
type State string

const (
	StateSlowStart State = "slow_start" // growing until a backlog of our own shows
	StateSteady    State = "steady"     // following the window law
	StateProbe     State = "probe"      // growing again after capacity seems to have risen
	StateDrain     State = "drain"      // emptying the queue for a moment to see the base RTT
	// StateCompetitive: sharing a queue that others keep full, as a loss-based
	// sender does.
	StateCompetitive State = "competitive"
)

// States lists every State.
func States() []State {
	return []State{StateSlowStart, StateSteady, StateProbe, StateDrain, StateCompetitive}
}

// Snapshot is a copy of a controller's state, for metrics, logs and tests.
type Snapshot struct {
	Law   Law
	State State

	RTT        time.Duration // smoothed RTT (avgRTT)
	BaseRTT    time.Duration // lowest RTT believed to be free of queueing
	QueueDelay time.Duration // last estimate of the queueing delay

	Backlog float64 // packets of ours held in the bottleneck queue
	Alpha   float64 // packets we want to hold there
	Gamma   float64 // gain of the last window update

	Window       int64   // congestion window, bytes
	InFlight     int64   // bytes in flight at the last event
	PacingRate   float64 // bytes per second; 0 before the first RTT sample
	DeliveryRate float64 // bytes per second, maximum of the last two rounds

	PacketsSent uint64  // ack-eliciting packets
	PacketsLost uint64  // packets declared lost, spurious losses taken back
	LossRate    float64 // smoothed share of lost bytes, 0 to 1
	AppLimited  bool    // the application, not the window, limits the sender
}
