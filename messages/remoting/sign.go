package remoting

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's
	"encoding/base64"
	"slices"
	"strings"
)

// Ext fields of a request that is signed (spec/remoting.md §16.1).
const (
	FieldAccessKey     = "AccessKey"
	FieldSecurityToken = "SecurityToken"
	FieldSignature     = "Signature"
)

// Sign adds an account's key and signature; what is added later makes the signature wrong.
func (c *Command) Sign(accessKey, secretKey string) {
	c.ExtFields = c.ExtFields.Set(FieldAccessKey, accessKey)
	c.ExtFields = c.ExtFields.Set(FieldSignature, base64.StdEncoding.EncodeToString(c.signature(secretKey, "")))
}

// SignedBy tells whether the request carries a signature made with that key, in a time that does not depend on where it differs.
// Two clients leave a field out of what they sign (spec/remoting.md §16.2): the Java broker drops _UNIQUE_KEY_QUERY of a
// QUERY_MESSAGE that the Java client signs, the Go client does not sign its token. Both ways are right.
func (c *Command) SignedBy(secretKey string) bool {
	text, _ := c.ExtFields.Get(FieldSignature)
	got, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	good := hmac.Equal(got, c.signature(secretKey, ""))
	for _, without := range []string{FieldSecurityToken, "_UNIQUE_KEY_QUERY"} {
		if _, there := c.ExtFields.Get(without); there {
			good = hmac.Equal(got, c.signature(secretKey, without)) || good
		}
	}
	return good
}

// signature is the HMAC-SHA1 of the values of all ext fields but the signature, sorted by name, and of the body.
func (c *Command) signature(secretKey, without string) []byte {
	fields := slices.SortedFunc(slices.Values(c.ExtFields), func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	mac := hmac.New(sha1.New, []byte(secretKey))
	for _, f := range fields {
		if f.Name != FieldSignature && f.Name != without {
			mac.Write([]byte(f.Value))
		}
	}
	mac.Write(c.Body)
	return mac.Sum(nil)
}
