package remoting

import (
	"fmt"

	"github.com/actormq/actormq/messages/fastjson"
)

// Bits of Command.Flag (spec/remoting.md §1.2).
const (
	FlagResponse int32 = 1
	FlagOneWay   int32 = 2
)

// Version is the version that every command of ours carries: 4.9.7 (spec/remoting.md §3.3).
const Version = 407

// Version numbers that decide on behaviour (spec/remoting.md §3.3).
const (
	VersionFilterServerBody  = 37
	VersionRunningInfo       = 62
	VersionResetOffset       = 28
	VersionMaxReconsumeTimes = 121
	VersionSQL92             = 232
	VersionStrictRoute       = 401
)

// Command is one frame, decoded. Its strings share memory with each other: clone those that are kept in long-lived
// tables (strings.Clone), or a short name pins its whole header.
type Command struct {
	Code      int // request code, or response code if FlagResponse is set; 16 bits in the binary codec
	Language  Language
	Version   int
	Opaque    int32 // chosen by the requester, echoed in the response
	Flag      int32
	Remark    string // "" is the same as absent
	ExtFields Ext    // nil: absent; not nil but empty: {} on the wire
	Body      []byte // nil or empty: none
	Binary    bool   // the ROCKETMQ codec instead of JSON
}

// NewRequest returns a request with the header's ext fields; a nil header gives none. The sender sets Opaque.
func NewRequest(code int, h Header) *Command {
	c := &Command{Code: code, Version: Version}
	if h != nil {
		c.ExtFields = ToExt(h)
	}
	return c
}

// Answer returns the response to c: same opaque, same codec (spec/remoting.md §1.5), without ext fields and body.
func (c *Command) Answer(code int, remark string) *Command {
	answer := c.Reply(code, remark)
	return &answer
}

// Reply is Answer by value.
func (c *Command) Reply(code int, remark string) Command {
	return Command{Code: code, Remark: remark, Version: Version, Opaque: c.Opaque, Flag: FlagResponse, Binary: c.Binary}
}

// IsResponse tells whether the command answers a request of the receiver.
func (c *Command) IsResponse() bool { return c.Flag&FlagResponse != 0 }

// IsOneWay tells whether the command must not be answered.
func (c *Command) IsOneWay() bool { return c.Flag&FlagOneWay != 0 }

// String tells kind, code and opaque, for logs and errors.
func (c *Command) String() string {
	if c.IsResponse() {
		return fmt.Sprintf("response %s #%d", ResponseName(c.Code), c.Opaque)
	}
	return fmt.Sprintf("request %s #%d", RequestName(c.Code), c.Opaque)
}

// DecodeBody reads the body, JSON or fastjson dialect, into what v points to (see fastjson.Unmarshal). No body is an
// error.
func (c *Command) DecodeBody(v any) error {
	if err := fastjson.Unmarshal(c.Body, v); err != nil {
		return fmt.Errorf("body of %v: %w", c, err)
	}
	return nil
}

// EncodeBody makes v the body, as compact strict JSON (see fastjson.Marshal).
func (c *Command) EncodeBody(v any) error {
	body, err := fastjson.Marshal(v)
	if err != nil {
		return fmt.Errorf("body of %v: %w", c, err)
	}
	c.Body = body
	return nil
}

// Language is the language of a command's sender (spec/remoting.md §1.6). Values without a name are kept.
type Language uint8

// The languages, by their byte in the binary codec.
const (
	LanguageJava Language = iota
	LanguageCPP
	LanguageDotNet
	LanguagePython
	LanguageDelphi
	LanguageErlang
	LanguageRuby
	LanguageOther
	LanguageHTTP
	LanguageGo
	LanguagePHP
	LanguageOMS
	LanguageRust
	// LanguageUnknown stands for a name that is not in the table.
	LanguageUnknown Language = 255
)

var languageNames = [...]string{
	"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
}

// LanguageOf returns the language with that name, as in the JSON codec.
func LanguageOf(name string) Language {
	for i, known := range languageNames {
		if name == known {
			return Language(i)
		}
	}
	return LanguageUnknown
}

// String returns the name of the JSON codec, "UNKNOWN" if it has none.
func (l Language) String() string {
	if int(l) < len(languageNames) {
		return languageNames[l]
	}
	return "UNKNOWN"
}
