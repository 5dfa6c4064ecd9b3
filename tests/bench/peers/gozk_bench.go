// go-zk's Lock, measured: README.md.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

type silent struct{}

func (silent) Printf(string, ...interface{}) {}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-zk:", err)
		os.Exit(1)
	}
}

func connect(servers string) *zk.Conn {
	conn, events, err := zk.Connect(strings.Split(servers, ","), 10*time.Second, zk.WithLogger(silent{}))
	must(err)
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	go func() { // nobody else reads them
		for range events {
		}
	}()
	return conn
}

func newLock(conn *zk.Conn, directory string) *zk.Lock {
	return zk.NewLock(conn, directory, zk.WorldACL(zk.PermAll))
}

func queue(conn *zk.Conn, directory string, n int) {
	var all sync.WaitGroup
	all.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			lock := newLock(conn, directory)
			must(lock.Lock())
			must(lock.Unlock())
			all.Done()
		}()
	}
	all.Wait()
}

func cycles(conn *zk.Conn, directory string, seconds float64) (count int) {
	lock := newLock(conn, directory)
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for ; time.Now().Before(end); count++ {
		must(lock.Lock())
		must(lock.Unlock())
	}
	return count
}

func handOffs(conns [2]*zk.Conn, directory string, count, idleMs, settling int) string {
	locks := [2]*zk.Lock{newLock(conns[0], directory), newLock(conns[1], directory)}
	granted := make(chan time.Time)
	holder, exists := 0, 0
	var times strings.Builder
	must(locks[holder].Lock())
	for i := 0; i < count; i++ {
		waiter := 1 - holder
		go func() {
			must(locks[waiter].Lock())
			granted <- time.Now()
		}()
		for k, queued := 0, int32(0); k < settling || queued < 2; k++ {
			_, stat, err := conns[waiter].Exists(directory)
			must(err)
			queued = stat.NumChildren
			exists++
		}
		time.Sleep(time.Duration(idleMs) * time.Millisecond)
		start := time.Now()
		must(locks[holder].Unlock())
		fmt.Fprint(&times, " ", (<-granted).Sub(start).Seconds())
		holder = waiter
	}
	must(locks[holder].Unlock())
	return fmt.Sprint(exists, times.String())
}

func number(word string) int {
	n, err := strconv.Atoi(word)
	must(err)
	return n
}

func main() {
	conn := connect(os.Args[1])
	var other *zk.Conn // of handoffs
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch w := strings.Fields(in.Text()); w[0] {
		case "queue":
			queue(conn, w[1], number(w[2]))
			fmt.Println("done")
		case "cycles":
			seconds, err := strconv.ParseFloat(w[2], 64)
			must(err)
			fmt.Println("done", cycles(conn, w[1], seconds))
		case "handoffs":
			if other == nil {
				other = connect(os.Args[1])
			}
			fmt.Println("done", handOffs([2]*zk.Conn{conn, other}, w[1], number(w[2]), number(w[3]), number(w[4])))
		default:
			must(fmt.Errorf("no command %s", w[0]))
		}
	}
	if other != nil {
		other.Close()
	}
	conn.Close()
}
