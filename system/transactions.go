package system

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/actormq/actormq/actors/offsets"
	"github.com/actormq/actormq/actors/transaction"
	"github.com/actormq/actormq/messages"
)

// ErrTransactions: the store's transactions have been started already.
var ErrTransactions = errors.New("transactions have been started already")

// TransactionOptions configure transactions. The zero value of a field is its default; names in parentheses are RocketMQ's.
type TransactionOptions struct {
	Timeout  time.Duration // transactionTimeOut: age of an undecided message at its first check; default 6 s
	Interval time.Duration // transactionCheckInterval; default 60 s
	MaxCheck int           // transactionCheckMax: then a message is given up (TRANS_CHECK_MAX_TIME_TOPIC); default 15

	// Check is asked what has become of a transaction that nobody has ended. It tells whether the question was taken; the
	// answer is a later Commit or Rollback of its Half, by any goroutine. nil: nobody is asked.
	Check func(messages.CheckTransaction) bool
}

// Transactions stores messages that become visible only when they are committed. Safe for concurrent use.
type Transactions struct {
	store   *Store
	offsets *offsets.Keeper
	keeper  *transaction.Keeper
}

// Transactions starts the store's transactions: what was undecided before is checked again. Their progress is kept in
// config/consumerOffset.json, as RocketMQ does. It is for programs that embed a store without a gateway: a gateway starts its own.
// Close of the store ends them. A second call is refused with ErrTransactions.
func (s *Store) Transactions(ctx context.Context, opt TransactionOptions) (*Transactions, error) {
	t := &Transactions{store: s}
	if !s.transactions.CompareAndSwap(nil, t) {
		return nil, ErrTransactions
	}
	root := s.cast.system.Root
	var err error
	t.offsets, err = offsets.Start(root, pidName(offsets.Role), offsets.Config{
		Disk: s.opt.Disk, Path: path.Join(s.ConfigDir(), "consumerOffset.json"), Logger: s.opt.Logger,
	})
	if err != nil {
		s.transactions.Store(nil)
		return nil, fmt.Errorf("start transactions: %w", err)
	}
	t.keeper, err = transaction.Start(ctx, root, pidName(transaction.Role), transaction.Config{
		Store: s, Offsets: t.offsets, Host: s.opt.StoreHost, Check: opt.Check, Timeout: opt.Timeout, Interval: opt.Interval,
		MaxCheck: opt.MaxCheck, Logger: s.opt.Logger,
	})
	if err != nil {
		err = errors.Join(err, t.offsets.Close())
		s.transactions.Store(nil)
		return nil, err
	}
	return t, nil
}

// Prepare stores a message that nobody sees until it is committed; its topic and queue are where it goes then. Producers that give it a
// UNIQ_KEY have it exactly once after a crash, too. Status and error are as with Put.
func (t *Transactions) Prepare(ctx context.Context, group string, m *messages.Message) (messages.Half, messages.PutResult, error) {
	if err := checkQueue(m); err != nil {
		result, err := refused(messages.MessageIllegal, err)
		return messages.Half{}, result, err
	}
	half := *m
	half.Properties = half.Properties.With(messages.PropertyTransactionMessage, "true").With(messages.PropertyProducerGroup, group)
	if half.BornTimestampMs == 0 {
		half.BornTimestampMs = time.Now().UnixMilli() // RocketMQ gives up half messages that were born long ago
	}
	transaction.Halve(&half)
	result, err := t.store.Put(ctx, &half)
	if !result.Status.Stored() || err != nil && result.Status == messages.PutOK {
		return messages.Half{}, result, err
	}
	t.keeper.Prepared(result.QueueOffset)
	return messages.Half{Group: group, QueueOffset: result.QueueOffset, PhysicalOffset: result.PhysicalOffset}, result, err
}

// Commit makes a prepared message visible and returns when that, and that it has been done, is stored with the promise of the flush
// mode. A transaction that was committed before is no error. messages.ErrTransactionOver: it was rolled back or given up.
func (t *Transactions) Commit(ctx context.Context, h messages.Half) (messages.PutResult, error) {
	return t.keeper.EndWait(ctx, h, true)
}

// Rollback drops a prepared message. A transaction that has ended before stays as it is, without an error.
func (t *Transactions) Rollback(ctx context.Context, h messages.Half) error {
	_, err := t.keeper.EndWait(ctx, h, false)
	return err
}

// Waiting is the number of undecided messages that the last round has seen.
func (t *Transactions) Waiting() int { return t.keeper.Waiting() }

// close ends the actors; the progress is saved.
func (t *Transactions) close(ctx context.Context) error {
	if t.keeper == nil {
		return nil // it is just starting; it dies with the store's actors
	}
	return errors.Join(t.keeper.Close(), t.offsets.Save(ctx), t.offsets.Close())
}
