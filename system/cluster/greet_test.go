package cluster

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/epochs"
)

func FuzzGreeting(f *testing.F) {
	var good bytes.Buffer
	require.NoError(f, writeGreeting(&good, welcome{Epoch: 3, History: epochs.History{Group: "g", Epochs: []epochs.Epoch{{Number: 3, Start: 9}}}, End: 12}))
	f.Add(good.Bytes())
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("AMQG\xff\xff\xff\xff{}"))
	f.Add([]byte("AMQG\x00\x00\x00\x02{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var w welcome
		if err := readGreeting(bytes.NewReader(b), &w); err != nil {
			require.ErrorIs(t, err, ErrGreeting)
			return
		}
		var again bytes.Buffer
		require.NoError(t, writeGreeting(&again, w))
		var x welcome
		require.NoError(t, readGreeting(&again, &x))
		require.Equal(t, w, x)
	})
}

func TestOnlyANodeInSyncIsElectedAndOnlyWhileNobodyLeads(t *testing.T) {
	v := view{record: &Record{Group: "g", Epoch: 4, Leader: "1", InSync: []string{"1", "2"}}}
	require.Equal(t, &Record{Group: "g", Epoch: 5, Leader: "2", InSync: []string{"2"}}, v.elected("2"), "without the leader before")
	require.Equal(t, &Record{Group: "g", Epoch: 5, Leader: "1", InSync: []string{"1", "2"}}, v.elected("1"), "which may come back itself")
	require.Nil(t, v.elected("3"), "it may lack something")
	v.leading = 4
	require.Nil(t, v.elected("2"))
	require.Equal(t, "1", v.leader())
}

func TestAGroupIsFoundedByTheNodeWithTheMost(t *testing.T) {
	all := []Node{{ID: "1"}, {ID: "2"}, {ID: "3"}}
	v := view{nodes: map[string]NodeState{"1": {ID: "1", End: 5}, "2": {ID: "2", End: 900}}}
	require.Empty(t, v.founder(all), "one is not there")
	v.nodes["3"] = NodeState{ID: "3", End: 7}
	require.Equal(t, "2", v.founder(all))
	v.nodes["1"] = NodeState{ID: "1", Epoch: 2, End: 5}
	require.Equal(t, "1", v.founder(all), "it was in a group")
	v.record = &Record{}
	require.Empty(t, v.founder(all), "there is one")
}
