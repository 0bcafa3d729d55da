package messages

// ResumeExtension tells an extension that is parked to go on, and one that is backing off to do it at once.
type ResumeExtension struct{}

// StopExtension asks an extension to end: the call that runs has its context cancelled and is awaited, and a dispatcher's
// position saved. Who does not want to wait longer stops the actor.
type StopExtension struct {
	Answer *Answer[struct{}]
}

// Refuse answers with an error.
func (m StopExtension) Refuse(cause error) { m.Answer.Refuse(cause) }
