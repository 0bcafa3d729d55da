package messages

// Announcement lets a message that says nothing but its type stand in a combining mailbox by a link of its own, so that
// announcing it does not allocate. One can be pending at most: it is sent again only after its receiver has taken it, as
// actors.Bell sees to. The receiver finds the message itself in its batch, not the announcement.
type Announcement struct {
	link Link
}

// Announce wraps a message.
func Announce(message any) *Announcement {
	a := &Announcement{}
	a.link.Bind(message)
	return a
}

// MailboxLink returns the link by which a mailbox chains the message.
func (a *Announcement) MailboxLink() *Link { return &a.link }
