package messages_test

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// The ids of spec/store.md §17.1, §17.2 and §17.4.
func TestOffsetMessageID(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("192.168.0.9:10911"), netip.MustParseAddrPort("[2001:db8::9]:10911")
	for _, c := range []struct {
		store netip.AddrPort
		at    messages.PhysicalOffset
		id    string
	}{
		{v4, 0, "C0A8000900002A9F0000000000000000"},
		{v6, 167, "20010DB800000000000000000000000900002A9F00000000000000A7"},
		{v4, 419, "C0A8000900002A9F00000000000001A3"},
		{v4, 565, "C0A8000900002A9F0000000000000235"},
		{netip.MustParseAddrPort("255.255.255.255:65535"), math.MaxInt64, "FFFFFFFF0000FFFF7FFFFFFFFFFFFFFF"},
		{netip.AddrPortFrom(netip.IPv4Unspecified(), 0), 1, "00000000000000000000000000000001"},
	} {
		require.Equal(t, c.id, messages.OffsetMessageID(c.store, c.at))
		for _, id := range []string{c.id, strings.ToLower(c.id)} {
			store, at, err := messages.ParseOffsetMessageID(id)
			require.NoError(t, err)
			require.Equal(t, c.store, store)
			require.Equal(t, c.at, at)
		}
	}
}

func TestOffsetMessageIDOfUnusualHosts(t *testing.T) {
	require.Equal(t, "0000000000000000000000000000000A", messages.OffsetMessageID(netip.AddrPort{}, 10), "zero host")
	mapped := netip.MustParseAddrPort("[::ffff:192.168.0.9]:10911")
	require.Equal(t, "C0A8000900002A9F0000000000000000", messages.OffsetMessageID(mapped, 0), "IPv4 mapped into IPv6")
	zoned := netip.MustParseAddrPort("[fe80::1%eth0]:1")
	require.Equal(t, "FE80000000000000000000000000000100000001"+"0000000000000000", messages.OffsetMessageID(zoned, 0))

	stored := messages.StoredMessage{PhysicalOffset: 419}
	stored.StoreHost = netip.MustParseAddrPort("192.168.0.9:10911")
	require.Equal(t, "C0A8000900002A9F00000000000001A3", stored.OffsetMessageID())

	store, _, err := messages.ParseOffsetMessageID("00000000000000000000FFFFC0A8000900002A9F0000000000000000")
	require.NoError(t, err)
	require.Equal(t, netip.MustParseAddrPort("192.168.0.9:10911"), store, "a mapped address comes back as IPv4")
}

func TestParseOffsetMessageIDRefuses(t *testing.T) {
	good := "C0A8000900002A9F00000000000001A3"
	for id, why := range map[string]string{
		"":                             "0 characters",
		good[:31]:                      "31 characters",
		good + "0":                     "33 characters",
		good + strings.Repeat("0", 23): "55 characters",
		good + strings.Repeat("0", 25): "57 characters",
		"G" + good[1:]:                 "invalid byte",
		good[:31] + "é"[:1]:            "invalid byte",
		"C0A8000900010000" + good[16:]: "port 65536",
		"C0A80009FFFFFFFF" + good[16:]: "port 4294967295",
		good[:16] + "8000000000000000": "offset -9223372036854775808",
	} {
		_, _, err := messages.ParseOffsetMessageID(id)
		require.ErrorIs(t, err, messages.ErrMessageID, "%q", id)
		require.ErrorContains(t, err, why, "%q", id)
	}
}

func FuzzParseOffsetMessageID(f *testing.F) {
	f.Add("C0A8000900002A9F00000000000001A3")
	f.Add("20010DB800000000000000000000000900002A9F00000000000000A7")
	f.Add("00000000000000000000FFFFC0A8000900002A9F0000000000000000")
	f.Add("C0A80009FFFFFFFF00000000000001A3")
	f.Fuzz(func(t *testing.T, id string) {
		store, at, err := messages.ParseOffsetMessageID(id)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, at, messages.PhysicalOffset(0))
		again, atAgain, err := messages.ParseOffsetMessageID(messages.OffsetMessageID(store, at))
		require.NoError(t, err)
		require.Equal(t, store, again)
		require.Equal(t, at, atAgain)
	})
}
