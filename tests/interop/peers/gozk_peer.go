// go-zk's lock, driven by lines on the standard input: README.md.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

var output sync.Mutex

func say(words ...interface{}) {
	output.Lock()
	defer output.Unlock()
	fmt.Println(words...)
}

type silent struct{}

func (silent) Printf(string, ...interface{}) {}

// The library has no accessor for it.
func nodeOf(lock *zk.Lock) string {
	return reflect.ValueOf(lock).Elem().FieldByName("lockPath").String()
}

type contender struct {
	conn *zk.Conn
	lock *zk.Lock // while it is held
}

func makeLock(conn *zk.Conn, kind, path string) (*zk.Lock, error) {
	if kind != "lock" {
		return nil, errors.New("no kind " + kind)
	}
	return zk.NewLock(conn, path, zk.WorldACL(zk.PermAll)), nil
}

func (c *contender) acquire(kind, path string) (string, error) {
	lock, err := makeLock(c.conn, kind, path)
	if err != nil {
		return "", err
	}
	if err = lock.Lock(); err != nil {
		return "", err
	}
	c.lock = lock
	return "acquired " + nodeOf(lock), nil
}

func (c *contender) violatesRecord(record, node string) (bool, error) {
	data, stat, err := c.conn.Get(record)
	if err != nil {
		return false, err
	}
	last := strings.Split(string(data), " ")
	count, err := strconv.Atoi(last[0])
	if err != nil {
		return false, err
	}
	mine := node[len(node)-10:]
	_, err = c.conn.Set(record, []byte(fmt.Sprint(count+1, " ", mine)), stat.Version)
	if err == zk.ErrBadVersion { // two were inside
		return true, nil
	}
	return last[1] != "-" && mine <= last[1], err
}

func (c *contender) load(kind, path, rounds, record string) (string, error) {
	lock, err := makeLock(c.conn, kind, path)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(rounds)
	if err != nil {
		return "", err
	}
	violations := 0
	for i := 0; i < n; i++ {
		if err = lock.Lock(); err != nil {
			return "", err
		}
		violated, err := c.violatesRecord(record, nodeOf(lock))
		if unlocked := lock.Unlock(); err == nil {
			err = unlocked
		}
		if err != nil {
			return "", err
		}
		if violated {
			violations++
		}
	}
	return fmt.Sprint("done ", n, " ", violations), nil
}

func (c *contender) answer(words []string) (string, error) {
	switch {
	case words[0] == "acquire" && len(words) >= 3:
		return c.acquire(words[1], words[2])
	case words[0] == "release" && c.lock != nil:
		err := c.lock.Unlock()
		c.lock = nil
		return "released", err
	case words[0] == "load" && len(words) >= 5:
		return c.load(words[1], words[2], words[3], words[4])
	}
	return "", errors.New("cannot " + words[0])
}

// The commands of one ID, one after another.
func (c *contender) run(id string, commands <-chan []string) {
	for words := range commands {
		text, err := c.answer(words)
		if err != nil {
			text = "failed " + err.Error()
		}
		say(id, text)
	}
}

func main() {
	conn, events, err := zk.Connect(strings.Split(os.Args[1], ","), 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	go func() { // nobody else reads them
		for range events {
		}
	}()
	say("ready")
	contenders := map[string]chan []string{}
	for in := bufio.NewScanner(os.Stdin); in.Scan() && in.Text() != "exit"; {
		words := strings.Fields(in.Text())
		if len(words) < 2 {
			continue
		}
		id := words[0]
		if contenders[id] == nil {
			contenders[id] = make(chan []string, 100)
			go (&contender{conn: conn}).run(id, contenders[id])
		}
		contenders[id] <- words[1:]
	}
	conn.Close()
}
