package messages

import "strings"

// Sent is what a broker has to know of the properties of a message that is sent to it.
type Sent struct {
	Waits bool // as [Properties.Waits]
	Half  bool // TRAN_MSG is "true": a half message of a transaction
}

// AppendSent appends p.Without(WAIT).With(CLUSTER, cluster) to dst, which is what a broker stores of a send's properties, and tells what
// they say, in one pass and without an allocation if there is room.
func (p Properties) AppendSent(dst []byte, cluster string) ([]byte, Sent) {
	sent := Sent{Waits: true}
	text, from := string(p), len(dst)
	kept, whole := 0, true // what begins at kept is not appended yet; whole: nothing is left out
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], propertySeparator); n >= 0 {
			end = at + n
		}
		if out := sent.note(text[at:end]); out || at == end {
			whole = whole && !out
			dst = appendJoined(dst, from, text[kept:max(kept, at-1)])
			kept = end + 1
		}
		at = end + 1
	}
	if whole { // byte for byte
		dst = append(dst[:from], text...)
	} else if kept < len(text) {
		dst = appendJoined(dst, from, strings.TrimSuffix(text[kept:], string(propertySeparator)))
	}
	if strings.IndexByte(cluster, propertySeparator) >= 0 { // CheckProperty refuses it
		return dst, sent
	}
	if len(dst) > from && dst[len(dst)-1] != propertySeparator {
		dst = append(dst, propertySeparator)
	}
	return append(append(dst, PropertyCluster+string(nameValueSeparator)...), cluster...), sent
}

// note takes down what a pair says, and tells whether it is not to be stored.
func (s *Sent) note(pair string) (leftOut bool) {
	const wait, cluster, half = len(PropertyWait), len(PropertyCluster), len(PropertyTransactionMessage)
	switch {
	case len(pair) <= wait:
	case pair[wait] == nameValueSeparator && pair[:wait] == PropertyWait:
		if value := pair[wait+1:]; value != "" {
			s.Waits = !strings.EqualFold(value, "false")
		}
		return true
	case len(pair) <= cluster:
	case pair[cluster] == nameValueSeparator && pair[:cluster] == PropertyCluster:
		return true
	case len(pair) > half+1 && pair[half] == nameValueSeparator && pair[:half] == PropertyTransactionMessage:
		s.Half = strings.EqualFold(pair[half+1:], "true")
	}
	return false
}

// appendJoined appends pairs behind those that stand from there on.
func appendJoined(dst []byte, from int, pairs string) []byte {
	if pairs == "" {
		return dst
	}
	if len(dst) > from {
		dst = append(dst, propertySeparator)
	}
	return append(dst, pairs...)
}
