// Package ctstudy makes synthetic CT studies: a chest-like phantom (body, lungs,
// heart, spine, quantum noise) as one series of CT Image Storage instances
// (PS3.3 A.3), written with github.com/suyashkumar/dicom as DICOM files
// (PS3.10) in Explicit VR Little Endian, 16-bit signed pixels.
//
// A study is a pure function of its Config: the same seed gives the same UIDs
// and the same bytes, slice by slice and in any order, so that a slice fetched
// back from an archive can be compared with the original without keeping it.
// The noise makes the pixels as hard to compress as those of a scanner.
//
// It never holds a whole study in memory, and its studies hold no patient data.
package ctstudy
