package mailbox

import (
	"context"

	"github.com/actormq/actormq/messages"
)

// Ask posts a request and waits for its answer, at most until the context ends; the request may then still take effect. The
// answer is the envelope that the request carries. messages.ErrBusy: the mailbox is full, and the request was not taken.
func Ask[T any](ctx context.Context, port *Combining, m messages.Linked, answer *messages.Answer[T]) (T, error) {
	if err := port.Post(m.MailboxLink()); err != nil {
		var zero T
		return zero, err
	}
	return answer.Wait(ctx)
}

// AskDone is Ask for a request whose answer is only that it is done, or why not.
func AskDone(ctx context.Context, port *Combining, m messages.Linked, answer *messages.Answer[struct{}]) error {
	_, err := Ask(ctx, port, m, answer)
	return err
}
