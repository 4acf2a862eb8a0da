// One call instruction that leads to several functions, and panics that leave one of them. For each line: rounds, by
// several goroutines, and "divide entered N returned M".
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

var entered, returned int64

//go:noinline
func divide(a, b int) int {
	atomic.AddInt64(&entered, 1)
	runtime.Gosched()
	if b == 0 {
		panic("division by zero")
	}
	atomic.AddInt64(&returned, 1)
	return a / b
}

//go:noinline
func modulo(a, b int) int {
	return a % b
}

var operations = []func(int, int) int{modulo, divide, modulo}

//go:noinline
func dispatch(operation int, a, b int) int {
	return operations[operation](a, b)
}

//go:noinline
func evaluate(i int) (value int) {
	defer func() {
		if recover() != nil {
			value = -1
		}
	}()
	return dispatch(1, 100, dispatch(0, i, 2))
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		var group sync.WaitGroup
		for g := 0; g < 8; g++ {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := 0; i < 100; i++ {
					evaluate(i)
				}
			}()
		}
		group.Wait()
		fmt.Printf("divide entered %d returned %d\n", entered, returned)
	}
}
