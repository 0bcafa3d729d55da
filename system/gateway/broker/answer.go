package broker

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// SeeFAQ is how the original ends its remarks about unknown things.
const SeeFAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."

// Header reads a request's typed header; when it can't, it answers with SYSTEM_ERROR and the field's name, and false.
func Header(r *gateway.Request, h remoting.Header) bool {
	if err := remoting.FromExt(r.ExtFields, h); err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return false
	}
	return true
}

// Body reads a request's JSON body; when it can't, it answers with SYSTEM_ERROR and says why, and false.
func Body(r *gateway.Request, v any) bool {
	if err := r.DecodeBody(v); err != nil {
		r.Fail(remoting.ResponseSystemError, err.Error())
		return false
	}
	return true
}

// Fail answers with the code and remark of a keeper's error.
func Fail(r *gateway.Request, err error) {
	code, remark := Code(err)
	r.Fail(code, remark)
}

// Bare answers with ext fields that are there and empty: what the original does where an answer of that code has a header of
// which nothing is set. An empty remark is none.
func Bare(r *gateway.Request, code int, remark string) {
	a := r.Command.Answer(code, remark)
	a.ExtFields = remoting.Ext{}
	r.Answer(a)
}

// refusal is why a request is not granted, in the protocol's words.
type refusal struct {
	code   int
	remark string
}

func (e *refusal) Error() string { return e.remark }

// Refuse returns an error that Code says with this code and remark.
func Refuse(code int, format string, args ...any) error {
	return &refusal{code: code, remark: fmt.Sprintf(format, args...)}
}

// Code says an error of Refuse, of a keeper or of the store in the protocol's words.
func Code(err error) (code int, remark string) {
	var no *refusal
	var name *messages.TopicNameError
	switch {
	case errors.As(err, &no):
		return no.code, no.remark
	case errors.As(err, &name):
		return remoting.ResponseSystemError, name.Remark
	case errors.Is(err, messages.ErrTopicNotExist):
		return remoting.ResponseTopicNotExist, err.Error()
	case errors.Is(err, messages.ErrGroupNotExist):
		return remoting.ResponseSubscriptionGroupNotExist, err.Error()
	case errors.Is(err, ErrLimited): // Java clients of 4.x do not try again on SYSTEM_BUSY
		return remoting.ResponseServiceNotAvailable, "[TOPIC_LIMIT]" + err.Error()
	case errors.Is(err, messages.ErrBusy):
		return remoting.ResponseSystemBusy, "[OVERLOAD]system busy, start flow control for a while"
	case errors.Is(err, messages.ErrClosed), errors.Is(err, messages.ErrFailed):
		return remoting.ResponseServiceNotAvailable, "service not available now. " + err.Error()
	}
	return remoting.ResponseSystemError, err.Error()
}

// GroupCode is Code for a group that could not be made: one with a name that no group has does not exist.
func GroupCode(err error) (code int, remark string) {
	if code, remark = Code(err); errors.Is(err, messages.ErrGroupName) {
		code = remoting.ResponseSubscriptionGroupNotExist
	}
	return code, remark
}

// Bool is how the protocol writes a boolean.
func Bool(b bool) string { return strconv.FormatBool(b) }
