package remoting

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSignatureIsThatOfRocketMQ(t *testing.T) {
	c := NewRequest(RequestGetRouteInfoByTopic, &RouteHeader{Topic: "DemoAuto"})
	c.ExtFields = Ext{{"topic", "DemoAuto"}}
	c.Sign("DemoUser01", "DemoSecret01")
	got, _ := c.ExtFields.Get(FieldSignature)
	require.Equal(t, "yPa+66dtPlt3P9Y1xbobPJ7/uAs=", got)
	require.True(t, c.SignedBy("DemoSecret01"))
	require.False(t, c.SignedBy("DemoSecret02"))
	c.Body = []byte("x")
	require.False(t, c.SignedBy("DemoSecret01"), "the body is signed too")
	require.False(t, (&Command{}).SignedBy("DemoSecret01"), "no signature at all")
	c.ExtFields = c.ExtFields.Set(FieldSignature, "no base 64!")
	require.False(t, c.SignedBy("DemoSecret01"))
}

func TestSignatureWithoutTheFieldsThatClientsLeaveOut(t *testing.T) {
	for _, field := range []string{FieldSecurityToken, "_UNIQUE_KEY_QUERY"} {
		c := &Command{ExtFields: Ext{{"topic", "T"}}}
		c.Sign("DemoUser01", "DemoSecret01")
		c.ExtFields = c.ExtFields.Set(field, "later")
		require.True(t, c.SignedBy("DemoSecret01"), field)
		c.ExtFields = c.ExtFields.Set("more", "later")
		require.False(t, c.SignedBy("DemoSecret01"), field)
	}
}
