package placing

import "strings"

// LowerUUID returns a UUID in lower case, as Almanac and OpenStack store it, and any other
// text as it is.
func LowerUUID(text string) string {
	if len(text) != len("00000000-0000-0000-0000-000000000000") {
		return text
	}
	for i := range len(text) {
		c, hyphen := text[i], i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (c == '-') || !hyphen && !isHex(c) {
			return text
		}
	}
	return strings.ToLower(text)
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// HintedReservations returns the ids of the reservations that the request's hint names;
// hinted reports whether it has the hint at all.
func (r *Request) HintedReservations() (ids []string, hinted bool) {
	values, hinted := r.Hints[ReservationHint]
	for _, value := range values {
		ids = append(ids, LowerUUID(value))
	}
	return ids, hinted
}
