package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	codeBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	// invoked is our program in a line of a shell: behind the line's begin or what may stand before a command.
	invoked = regexp.MustCompile(`(?:^|[|(&;] *|do )(?:bin/|\./)?(?:go run \./cmd/)?actormq((?: .*)?)$`)
	// placeholder stands for what the reader puts in; it may be a number, too.
	placeholder = regexp.MustCompile(`^(?:[A-Z]+|\$[A-Za-z]+)$`)
)

// documented are the arguments of each command of ours in a document: those in a block of a shell, and those in a line of text, of which some
// leave arguments out.
func documented(text string) (whole, named [][]string) {
	for _, block := range codeBlock.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			if args, ok := argumentsOf(line); ok {
				whole = append(whole, args)
			}
		}
	}
	for _, span := range codeSpan.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		if args, ok := argumentsOf(span[1]); ok {
			named = append(named, args)
		}
	}
	return whole, named
}

// argumentsOf splits a line of a shell: what is between the program's name and a comment, a pipe, or what else ends the command.
func argumentsOf(line string) (args []string, ok bool) {
	line = strings.TrimSpace(line)
	if at := strings.Index(line, "$(bin/actormq"); at >= 0 {
		line = line[:at] + `X"` // a command in a command: the test looks at the outer one
	}
	m := invoked.FindStringSubmatch(line)
	if m == nil {
		return nil, false
	}
	for _, word := range regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(m[1], -1) {
		if strings.HasPrefix(word, "#") || word == "|" || word == "&" || word == ">" || word == "2>" || word == "<" {
			break
		}
		word = strings.Trim(word, `"',`)
		if placeholder.MatchString(word) {
			word = "1"
		}
		args = append(args, word)
	}
	return args, len(args) == 0 || args[0] != "1" // any command
}

// understood tells what is wrong with the arguments of a command.
func understood(args []string, whole bool) error {
	root := newRootCommand()
	root.InitDefaultCompletionCmd()
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if c == root && len(args) > 0 {
		return fmt.Errorf("no command %q", args[0])
	}
	c.InitDefaultHelpFlag()
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if !whole {
		return nil
	}
	if err := c.ValidateRequiredFlags(); err != nil {
		return err
	}
	return c.ValidateArgs(c.Flags().Args())
}

// What documents say to type is understood: there is the command, and it has these flags, and in a block of a shell these arguments.
func TestDocumentedCommandsAreUnderstood(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	seen := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		whole, named := documented(string(text))
		for _, args := range whole {
			require.NoError(t, understood(args, true), "%s: actormq %s", file, strings.Join(args, " "))
		}
		for _, args := range named {
			require.NoError(t, understood(args, false), "%s: actormq %s", file, strings.Join(args, " "))
		}
		seen += len(whole) + len(named)
	}
	require.Greater(t, seen, 80, "commands in all documents")
	for _, wrong := range []string{"topic mend", "topic create orders --cues 4", "consume", "drain a b", "mend"} {
		require.Error(t, understood(strings.Fields(wrong), true), wrong)
	}
}
