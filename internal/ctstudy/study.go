package ctstudy

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
)

// Config says which study to make.
type Config struct {
	// Slices is the number of instances, 1 to 10000.
	Slices int
	// Size is the number of rows and of columns, 16 to 2048, even (a scanner
	// makes 512). A slice takes 2*Size*Size bytes and about 1.5 kB of header.
	Size int
	// Seed selects the patient, the UIDs and the noise.
	Seed uint64
}

// Validate reports the first field out of its range.
func (c Config) Validate() error {
	if c.Slices < 1 || c.Slices > 10000 {
		return fmt.Errorf("ctstudy: Slices is %d: must be 1 to 10000", c.Slices)
	}
	if c.Size < 16 || c.Size > 2048 || c.Size%2 != 0 {
		return fmt.Errorf("ctstudy: Size is %d: must be an even number from 16 to 2048", c.Size)
	}
	return nil
}

// Instance is one slice as a DICOM file.
type Instance struct {
	Number         int    // Instance Number (0020,0013), from 1
	SOPInstanceUID string // (0008,0018)
	File           []byte // PS3.10 file, preamble included
}

// Study makes the instances of one study. It is safe for concurrent use.
type Study struct {
	cfg  Config
	uids uids
}

// New returns the study of cfg.
func New(cfg Config) (*Study, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Study{cfg: cfg, uids: newUIDs(cfg.Seed)}, nil
}

// Len is the number of instances.
func (s *Study) Len() int { return s.cfg.Slices }

// StudyInstanceUID is (0020,000D) of every instance.
func (s *Study) StudyInstanceUID() string { return s.uids.study }

// SeriesInstanceUID is (0020,000E) of every instance.
func (s *Study) SeriesInstanceUID() string { return s.uids.series }

// PatientID is (0010,0020) of every instance.
func (s *Study) PatientID() string { return patientID(s.cfg.Seed) }

// Instance makes the instance of that number, 1 to Len.
func (s *Study) Instance(number int) (Instance, error) {
	if number < 1 || number > s.cfg.Slices {
		return Instance{}, fmt.Errorf("ctstudy: no instance %d: there are 1 to %d", number, s.cfg.Slices)
	}
	uid := s.uids.instance(number)
	var file bytes.Buffer
	file.Grow(2*s.cfg.Size*s.cfg.Size + 4096)
	if err := writeFile(&file, s.header(number, uid), pixels(s.cfg, number)); err != nil {
		return Instance{}, fmt.Errorf("ctstudy: writing instance %d: %w", number, err)
	}
	return Instance{Number: number, SOPInstanceUID: uid, File: file.Bytes()}, nil
}

// All yields every instance in order, making a few ahead on all processors. It
// ends with the error of ctx when ctx does. The goroutines it starts are gone
// when the loop over it ends.
func (s *Study) All(ctx context.Context) iter.Seq2[Instance, error] {
	return func(yield func(Instance, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		type result struct {
			Instance
			err error
		}
		workers := min(runtime.GOMAXPROCS(0), s.cfg.Slices)
		// pending carries one channel per instance, in order; its capacity and
		// the workers bound how many finished instances wait.
		type job struct {
			number int
			done   chan result
		}
		jobs := make(chan job)
		pending := make(chan chan result, workers)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for range workers {
			wg.Go(func() {
				for j := range jobs {
					inst, err := s.Instance(j.number)
					j.done <- result{inst, err}
				}
			})
		}
		wg.Go(func() {
			defer close(pending)
			defer close(jobs)
			for n := 1; n <= s.cfg.Slices; n++ {
				done := make(chan result, 1)
				select {
				case pending <- done:
				case <-ctx.Done():
					return
				}
				// A worker always takes the job: none waits for the consumer.
				jobs <- job{n, done}
			}
		})
		n := 0
		for done := range pending {
			r := <-done
			if !yield(r.Instance, r.err) || r.err != nil {
				return
			}
			n++
		}
		if n < s.cfg.Slices {
			yield(Instance{}, fmt.Errorf("ctstudy: stopped after %d of %d instances: %w", n, s.cfg.Slices, context.Cause(ctx)))
		}
	}
}
