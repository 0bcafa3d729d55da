package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// pages are what is looked at; a message and a dead letter are added once they are found.
var pages = []struct{ name, path string }{
	{"overview", "/console/?span=2m"}, {"topics", "/console/topics"}, {"topics-all", "/console/topics?all=1"}, {"topic", "/console/topic?name=orders"},
	{"groups", "/console/groups"}, {"group", "/console/group?name=billing"}, {"messages", "/console/messages?topic=payments"},
	{"message", "/console/messages?topic=orders&queue=0"}, {"delayed", "/console/delayed"}, {"dead", "/console/dead"},
	{"dead-group", "/console/dead?group=shipping"}, {"replicas", "/console/replicas"}, {"storage", "/console/storage"},
	{"actors", "/console/actors"}, {"missing", "/console/topic?name=nobodys"},
}

// looks are the windows.
var looks = []struct {
	name          string
	width, height int64
	scheme        string
}{
	{"desk-light", 1360, 900, "light"}, {"desk-dark", 1360, 900, "dark"}, {"phone-light", 390, 844, "light"}, {"phone-dark", 390, 844, "dark"},
}

func main() {
	base := flag.String("base", "http://127.0.0.1:10914", "address of the admin port")
	out := flag.String("out", "pictures", "folder for the pictures")
	browser := flag.String("chromium", "chromium", "the browser")
	extra := flag.String("flags", "", "more switches of the browser, with spaces between them")
	only := flag.String("only", "", "login: look at the login and nothing else")
	password := flag.String("password", "", "log in with it")
	flag.Parse()
	if err := run(*base, *out, *browser, *password, *only == "login", strings.Fields(*extra)); err != nil {
		log.Fatal(err)
	}
}

// problems collects what a browser complains about.
type problems struct {
	mu   sync.Mutex
	list []string
	page string
}

func (p *problems) add(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, p.page+": "+fmt.Sprintf(format, args...))
}

func (p *problems) at(page string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page = page
}

func run(base, out, browser, password string, justLogin bool, extra []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(browser))
	for _, name := range extra {
		options = append(options, chromedp.Flag(strings.TrimLeft(name, "-"), true))
	}
	all, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	ctx, cancel := chromedp.NewContext(all)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	p := &problems{}
	chromedp.ListenTarget(ctx, p.hear)
	if err := chromedp.Run(ctx, network.Enable(), cdplog.Enable(), runtime.Enable()); err != nil {
		return fmt.Errorf("start the browser: %w", err)
	}
	if password != "" {
		if err := login(ctx, base, out, password); err != nil {
			return err
		}
		if justLogin {
			fmt.Println("the login works")
			return nil
		}
	}
	for _, look := range looks {
		view := chromedp.Tasks{
			chromedp.EmulateViewport(look.width, look.height),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}}),
		}
		if err := chromedp.Run(ctx, view); err != nil {
			return err
		}
		for _, page := range pages {
			p.at(look.name + " " + page.name)
			if err := visit(ctx, p, base+page.path, page.name); err != nil {
				return fmt.Errorf("%s: %w", page.name, err)
			}
			if err := picture(ctx, filepath.Join(out, page.name+"-"+look.name+".png")); err != nil {
				return err
			}
		}
	}
	p.at("keyboard")
	if err := keyboard(ctx, p, base); err != nil {
		return err
	}
	p.at("live")
	if err := live(ctx, p, base); err != nil {
		return err
	}
	if len(p.list) > 0 {
		return fmt.Errorf("%d problems:\n%s", len(p.list), strings.Join(p.list, "\n"))
	}
	fmt.Printf("%d pages, %d windows: no error; pictures in %s\n", len(pages), len(looks), out)
	return nil
}

// hear notes what the browser complains about.
func (p *problems) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.add("exception: %s", e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			text, _ := json.Marshal(e.Args)
			p.add("console: %s", text)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError && !strings.HasSuffix(e.Entry.URL, "name=nobodys") {
			p.add("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled {
			p.add("not loaded: %s", e.ErrorText)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme == "http" && u.Hostname() != "127.0.0.1" || u.Scheme == "https" {
			p.add("asks another host: %s", e.Request.URL)
		}
	}
}

func login(ctx context.Context, base, out, password string) error {
	answer, err := http.Get(base + "/console/topics")
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("without a login the answer is %s", answer.Status)
	}
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(1360, 900), chromedp.Navigate(base+"/console/topics"), chromedp.WaitVisible("input[name=password]", chromedp.ByQuery)); err != nil {
		return err
	}
	if err := picture(ctx, filepath.Join(out, "login.png")); err != nil {
		return err
	}
	return chromedp.Run(ctx, chromedp.SendKeys("input[name=password]", password+"\r", chromedp.ByQuery), chromedp.WaitVisible("nav", chromedp.ByQuery))
}

// visit opens a page and looks at what holds for all of them.
func visit(ctx context.Context, p *problems, address, name string) error {
	var wide, narrow int64
	var title string
	tasks := chromedp.Tasks{chromedp.Navigate(address), chromedp.WaitVisible("h1", chromedp.ByQuery)}
	if name == "message" { // the first that is found
		var href string
		tasks = append(tasks, chromedp.Evaluate("document.querySelector(\"td a[href^='/console/message?']\").href", &href),
			chromedp.ActionFunc(func(ctx context.Context) error { return chromedp.Navigate(href).Do(ctx) }), chromedp.WaitVisible("pre", chromedp.ByQuery))
	}
	tasks = append(tasks, chromedp.Text("h1", &title, chromedp.ByQuery), chromedp.Evaluate("document.documentElement.scrollWidth", &wide),
		chromedp.Evaluate("document.documentElement.clientWidth", &narrow))
	if err := chromedp.Run(ctx, tasks); err != nil {
		return err
	}
	if wide > narrow {
		p.add("the page is %d wide in a window of %d", wide, narrow)
	}
	if title == "" {
		p.add("no heading")
	}
	return nil
}

func picture(ctx context.Context, name string) error {
	var png []byte
	if err := chromedp.Run(ctx, chromedp.FullScreenshot(&png, 100)); err != nil {
		return err
	}
	return os.WriteFile(name, png, 0o644)
}

// keyboard goes through the menu with the tab key, and opens an entry with Enter.
func keyboard(ctx context.Context, p *problems, base string) error {
	if err := chromedp.Run(ctx, chromedp.Navigate(base+"/console/"), chromedp.WaitVisible("h1", chromedp.ByQuery)); err != nil {
		return err
	}
	for range 40 {
		var at string
		if err := chromedp.Run(ctx, chromedp.KeyEvent("\t"), chromedp.Evaluate("document.activeElement.textContent.trim()", &at)); err != nil {
			return err
		}
		if at == "Storage" {
			var outline, title string
			err := chromedp.Run(ctx, chromedp.Evaluate("getComputedStyle(document.activeElement).outlineStyle", &outline), chromedp.KeyEvent("\r"),
				chromedp.WaitVisible("#disks", chromedp.ByQuery), chromedp.Text("h1", &title, chromedp.ByQuery))
			if err == nil && (title != "Storage" || outline == "none") {
				p.add("Enter leads to %q, the focus is shown as %q", title, outline)
			}
			return err
		}
	}
	p.add("the tab key does not reach the menu")
	return nil
}

// live waits for a number to change by itself, and not to once the page is paused. Something is being sent meanwhile.
func live(ctx context.Context, p *problems, base string) error {
	const number = "document.querySelector('#plots').innerHTML"
	var before, after string
	if err := chromedp.Run(ctx, chromedp.Navigate(base+"/console/"), chromedp.WaitVisible("#plots", chromedp.ByQuery), chromedp.Evaluate(number, &before)); err != nil {
		return err
	}
	err := chromedp.Run(ctx, chromedp.Poll("document.querySelector('#plots').innerHTML !== "+quote(before), nil, chromedp.WithPollingTimeout(20*time.Second)))
	if err != nil {
		p.add("the plots stay as they are: %v", err)
	}
	if err := chromedp.Run(ctx, chromedp.KeyEvent("p"), chromedp.WaitVisible("#pause[aria-pressed=true]", chromedp.ByQuery), chromedp.Sleep(time.Second), chromedp.Evaluate(number, &before),
		chromedp.Sleep(6*time.Second), chromedp.Evaluate(number, &after)); err != nil {
		return err
	}
	if before != after {
		p.add("a paused page goes on")
	}
	return nil
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
