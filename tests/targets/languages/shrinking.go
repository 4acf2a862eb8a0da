// Calls in flight on stacks that become smaller while garbage is collected. For each line: "sum N".
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

const workers, rounds = 32, 40

//go:noinline
func deep(n int) int {
	var pad [512]byte
	pad[n%512] = byte(n)
	if n == 0 {
		return int(pad[0])
	}
	return deep(n-1) + int(pad[n%512]&1)
}

//go:noinline
func held(c chan int, n int) int {
	c <- n
	return n + <-c
}

func work(sum *int64) {
	c := make(chan int)
	defer close(c)
	go func() {
		for v := range c {
			runtime.Gosched()
			c <- v + 1
		}
	}()
	for i := 0; i < rounds; i++ {
		atomic.AddInt64(sum, int64(deep(60)+held(c, i)))
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		sum, busy := int64(0), int64(workers)
		var group sync.WaitGroup
		for w := 0; w < workers; w++ {
			group.Add(1)
			go func() {
				defer group.Done()
				defer atomic.AddInt64(&busy, -1)
				work(&sum)
			}()
		}
		for atomic.LoadInt64(&busy) > 0 {
			runtime.GC()
		}
		group.Wait()
		fmt.Println("sum", sum)
	}
}
