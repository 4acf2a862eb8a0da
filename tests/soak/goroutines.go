// goroutines: calls in flight on stacks that grow, panics that are caught. For each line: "sum N".
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

//go:noinline
func deep(n int) int {
	var pad [256]byte
	pad[n%256] = byte(n)
	if n == 0 {
		return int(pad[0])
	}
	return deep(n-1) + int(pad[n%256])
}

//go:noinline
func outer(n int) int {
	return deep(n) + 1 // grows the stack while outer is in flight
}

//go:noinline
func leaf(n int) int {
	return n * 3
}

//go:noinline
func climb(n int) int {
	var pad [128]byte
	pad[n%128] = 1
	r := 0
	if n > 0 {
		r = climb(n-1) + int(pad[n%127])
	}
	return r
}

//go:noinline
func panics(n int) (r int) {
	if n%2 == 0 {
		panic("even")
	}
	return n
}

//go:noinline
func guarded(n int) (r int) {
	defer func() {
		if recover() != nil {
			r = -1
		}
	}()
	return panics(n)
}

func main() {
	usr := make(chan os.Signal, 1)
	signal.Notify(usr, syscall.SIGTRAP)
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		var wg sync.WaitGroup
		sum := int64(0)
		for g := 0; g < 200; g++ {
			wg.Add(1)
			go func(g int) {
				defer wg.Done()
				s := 0
				for i := 0; i < 5; i++ {
					s += outer(10 + i*20)
					s += leaf(i)
					runtime.Gosched()
					s += climb(50)
					s += guarded(i)
				}
				atomic.AddInt64(&sum, int64(s))
			}(g)
		}
		wg.Wait()
		runtime.GC()
		fmt.Println("sum", sum)
	}
}
