// Package dicomweb is a small DICOMweb client (PS3.18): it stores instances
// (STOW-RS), searches for studies, series and instances (QIDO-RS) and retrieves
// instances as they are stored (WADO-RS).
//
// Instances stream both ways: a request body is made from an iterator, a
// response is handed out part by part, and memory does not grow with either.
// What a server says in JSON is bounded before it is read.
//
// A success status is not believed when the payload says otherwise: what was
// stored is what Referenced SOP Sequence (0008,1199) lists, since there are
// servers that answer 200 and store nothing.
//
// It never retries, never compresses a request, never decodes an instance, and
// its errors hold no query, so that they can be logged.
package dicomweb
