package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"fastpacs/internal/ctstudy"
	"fastpacs/internal/dicomweb"
)

// originals are the checksums of what was stored, by SOP Instance UID.
type originals map[string][sha256.Size]byte

// store sends a study and believes that it is stored when the archive lists
// every instance of it. sent sees each instance as it goes out.
func store(ctx context.Context, c *dicomweb.Client, study *ctstudy.Study, sent func(ctstudy.Instance)) error {
	result, err := c.Store(ctx, func(yield func(io.Reader, error) bool) {
		for inst, err := range study.All(ctx) {
			if err == nil {
				sent(inst)
			}
			if !yield(bytes.NewReader(inst.File), err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if len(result.Stored) != study.Len() || len(result.Failed) != 0 {
		return fmt.Errorf("storing: the archive took %d and refused %d of %d instances", len(result.Stored), len(result.Failed), study.Len())
	}
	return nil
}

// find returns the series and the instances of a study as a viewer learns of
// them, by QIDO-RS.
func find(ctx context.Context, c *dicomweb.Client, studyUID string) ([]dicomweb.Ref, error) {
	found, err := c.Instances(ctx, dicomweb.Ref{Study: studyUID}, nil)
	if err != nil {
		return nil, err
	}
	refs := make([]dicomweb.Ref, len(found))
	for i, f := range found {
		refs[i] = dicomweb.Ref{
			Study:    studyUID,
			Series:   f.String(dicomweb.SeriesInstanceUID),
			Instance: f.String(dicomweb.SOPInstanceUID),
		}
	}
	return refs, nil
}

// fetched counts what has arrived; it may be read while it grows.
type fetched struct {
	bytes     atomic.Int64 // of instances, as they arrive
	instances atomic.Int64 // complete and identical to what was stored
}

// check reads an instance to its end and compares it with the original: that of
// its UID, or of any UID that is left if the response does not name it.
func (f *fetched) check(part dicomweb.Part, uid string, want *unseen) error {
	h := sha256.New()
	n, err := io.Copy(h, countingReader{part, &f.bytes})
	if err != nil {
		return fmt.Errorf("reading instance %s: %w", uid, err)
	}
	if !want.take([sha256.Size]byte(h.Sum(nil)), uid) {
		return fmt.Errorf("instance %s came back different from what was stored (%d bytes)", uid, n)
	}
	f.instances.Add(1)
	return nil
}

// unseen are the originals that have not come back yet.
type unseen struct {
	mu    sync.Mutex
	bySum map[[sha256.Size]byte]string // to SOP Instance UID
}

func newUnseen(o originals) *unseen {
	u := &unseen{bySum: make(map[[sha256.Size]byte]string, len(o))}
	for uid, sum := range o {
		u.bySum[sum] = uid
	}
	return u
}

// take reports whether an instance of that checksum was waited for, under that
// UID if one is given; it is waited for no longer.
func (u *unseen) take(sum [sha256.Size]byte, uid string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	was, ok := u.bySum[sum]
	if !ok || uid != "" && uid != was {
		return false
	}
	delete(u.bySum, sum)
	return true
}

type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n.Add(int64(n))
	return n, err
}

// fetchStudy retrieves a whole study in one response.
func fetchStudy(ctx context.Context, c *dicomweb.Client, studyUID string, want *unseen, f *fetched) error {
	for part, err := range c.Retrieve(ctx, dicomweb.Ref{Study: studyUID}) {
		if err != nil {
			return err
		}
		if err := f.check(part, "", want); err != nil {
			return err
		}
	}
	return nil
}

// fetchInstances retrieves instances one by one, several at a time.
func fetchInstances(ctx context.Context, c *dicomweb.Client, refs []dicomweb.Ref, parallel int, want *unseen, f *fetched) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			parts := 0
			for part, err := range c.Retrieve(ctx, ref) {
				if err != nil {
					return err
				}
				if err := f.check(part, ref.Instance, want); err != nil {
					return err
				}
				parts++
			}
			if parts != 1 {
				return fmt.Errorf("instance %s came in %d parts", ref.Instance, parts)
			}
			return nil
		})
	}
	return group.Wait()
}
