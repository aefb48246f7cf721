package cc

// placeholder while the law is written: a fixed window.
type fixed struct {
	w, mds int64
}

func NewImproved(_ Params, mds int64, _ RTTSource) Controller { return &fixed{256 * mds, mds} }

func NewStatic(_ StaticParams, mds int64, _ RTTSource) Controller { return &fixed{256 * mds, mds} }

type (
	Params       struct{}
	StaticParams struct{}
)

func DefaultParams() Params             { return Params{} }
func DefaultStaticParams() StaticParams { return StaticParams{} }

func (f *fixed) OnPacketSent(now, bytesInFlight, packetNumber, size int64, ackEliciting bool) {}
func (f *fixed) OnAckBegin()                                                                  {}
func (f *fixed) OnPacketAcked(now, packetNumber, size, priorInFlight int64)                   {}
func (f *fixed) OnPacketLost(packetNumber, size, priorInFlight int64)                         {}
func (f *fixed) OnSpuriousLoss(packetNumber int64)                                            {}
func (f *fixed) CanSend(bytesInFlight int64) bool                                             { return bytesInFlight < f.w }
func (f *fixed) Window() int64                                                                { return f.w }
func (f *fixed) HasPacingBudget(now int64) bool                                               { return true }
func (f *fixed) NextSend(bytesInFlight int64) int64                                           { return 0 }
func (f *fixed) SetMaxDatagramSize(size int64)                                                {}
func (f *fixed) InSlowStart() bool                                                            { return false }
func (f *fixed) InRecovery() bool                                                             { return false }
func (f *fixed) Snapshot() Snapshot                                                           { return Snapshot{Law: LawImproved, State: StateSteady, Window: f.w} }
