package quicnet

import (
	"sync"
	"testing"
	"time"

	"fastpacs/cc"
)

// spies makes real controllers and keeps watch over each.
type spies struct {
	mu   sync.Mutex
	made []*spy
}

type spy struct {
	cc.Controller
	client bool

	mu         sync.Mutex
	sent       int // packets
	acked      int
	lost       int
	pureAcks   int   // packets not ack-eliciting
	lastPN     int64 // -1 before the first
	outOfOrder int   // packets whose number was not above the last one's
	inFlight   int64 // as told with the last packet
	badFlight  int   // pure ACKs that changed what is in flight
}

func (s *spies) new(client bool, maxDatagramSize int64, rtt cc.RTTSource) cc.Controller {
	c := &spy{Controller: cc.New(cc.LawImproved, maxDatagramSize, rtt), client: client, lastPN: -1}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, c)
	return c
}

// of returns the controllers of one end, in the order they were made.
func (s *spies) of(client bool) (found []*spy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.made {
		if c.client == client {
			found = append(found, c)
		}
	}
	return found
}

func (s *spies) config() Config {
	c := DefaultConfig()
	c.NewController = s.new
	c.Controllers = &Controllers{}
	return c
}

func (c *spy) OnPacketSent(now, inFlight, pn, size int64, ackEliciting bool) {
	c.Controller.OnPacketSent(now, inFlight, pn, size, ackEliciting)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	if pn <= c.lastPN {
		c.outOfOrder++
	}
	c.lastPN = pn
	if !ackEliciting {
		c.pureAcks++
		if inFlight > c.inFlight {
			c.badFlight++
		}
	}
	c.inFlight = inFlight
}

func (c *spy) OnPacketAcked(now, pn, size, prior int64) {
	c.Controller.OnPacketAcked(now, pn, size, prior)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked++
}

func (c *spy) OnPacketLost(pn, size, prior int64) {
	c.Controller.OnPacketLost(pn, size, prior)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost++
}

// counts returns packets sent and acknowledged.
func (c *spy) counts() (sent, acked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent, c.acked
}

// eventually polls until ok says yes, for at most the deadline of these tests.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}
