package projection

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// Projection is the extension. Plug it into the options of one store.
type Projection struct{ db *sql.DB }

// Row is what is known of one topic and tag.
type Row struct {
	Topic, Tag      string
	Messages, Bytes int64
}

var schema = []string{
	`CREATE TABLE IF NOT EXISTS projection_counts (
		topic TEXT NOT NULL, tag TEXT NOT NULL, messages INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (topic, tag))`,
	`CREATE TABLE IF NOT EXISTS projection_position (id INTEGER PRIMARY KEY CHECK (id = 1), position TEXT NOT NULL)`,
}

// New makes the tables that are not there. The database stays the caller's, who closes it after the store.
func New(db *sql.DB) (*Projection, error) {
	for _, statement := range schema {
		if _, err := db.Exec(statement); err != nil {
			return nil, fmt.Errorf("make the tables of a projection: %w", err)
		}
	}
	return &Projection{db: db}, nil
}

// Plug adds the projection to a store's options: a dispatcher.
func (p *Projection) Plug(opt *system.Options) {
	opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{Name: "projection", Durable: true, Load: p.load, Handle: p.handle})
}

// Rows returns all rows, by topic and tag.
func (p *Projection) Rows(ctx context.Context) ([]Row, error) {
	rows, err := p.db.QueryContext(ctx, `SELECT topic, tag, messages, bytes FROM projection_counts ORDER BY topic, tag`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []Row
	for rows.Next() {
		var r Row
		if err := rows.Scan(&r.Topic, &r.Tag, &r.Messages, &r.Bytes); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func position(ctx context.Context, q querier) (at system.Position, found bool, err error) {
	var text []byte
	err = q.QueryRowContext(ctx, `SELECT position FROM projection_position`).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return at, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	return at, err == nil, err
}

// load tells where to go on; what was counted of another log is forgotten.
func (p *Projection) load(s *system.Store) (system.Position, bool, error) {
	ctx := context.Background()
	at, found, err := position(ctx, p.db)
	if err != nil || !found {
		return at, false, err
	}
	if err = s.CheckPosition(at); !errors.Is(err, system.ErrPosition) {
		return at, err == nil, err
	}
	return system.Position{}, false, p.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM projection_counts`)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM projection_position`)
		}
		return err
	})
}

// handle counts a batch and moves the position, both or neither.
func (p *Projection) handle(ctx context.Context, b *system.Batch) error {
	counts := map[[2]string]Row{}
	for m, err := range b.Messages() {
		if err != nil {
			return err
		}
		tag, _ := m.Properties.Get(messages.PropertyTags)
		r := counts[[2]string{m.Topic, tag}]
		r.Messages, r.Bytes = r.Messages+1, r.Bytes+int64(len(m.Body))
		counts[[2]string{m.Topic, tag}] = r
	}
	next, err := b.Position()
	if err != nil {
		return err
	}
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	return p.transact(ctx, func(tx *sql.Tx) error {
		at, found, err := position(ctx, tx)
		if err != nil || found && at.Offset >= next.Offset { // it has been counted
			return err
		}
		for key, r := range counts {
			if _, err := tx.ExecContext(ctx, `INSERT INTO projection_counts VALUES (?, ?, ?, ?) ON CONFLICT (topic, tag)
				DO UPDATE SET messages = messages + excluded.messages, bytes = bytes + excluded.bytes`,
				key[0], key[1], r.Messages, r.Bytes); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx,
			`INSERT INTO projection_position VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET position = excluded.position`, string(text))
		return err
	})
}

func (p *Projection) transact(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("projection: %w", err)
	}
	if err := fn(tx); err != nil {
		return errors.Join(fmt.Errorf("projection: %w", err), tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("projection: %w", err)
	}
	return nil
}
