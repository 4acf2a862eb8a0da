// parameters: what Go passes in registers of its own and on the stack, and what is not kept once it is in.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
)

type big struct{ a [3]int }

//go:noinline
func many(e error, n int, yes bool, s []byte, x, y, z, w int) int { return n + w - x }

//go:noinline
func stacked(b big, e error, a [2]int) int { return b.a[1] + a[1] }

//go:noinline
func replaced(e error, n int) int {
	e = errors.New("another")
	return n + len(e.Error())
}

func main() {
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println("sum", many(nil, 3, true, nil, 11, 12, 13, 14)+stacked(big{[3]int{1, 2, 3}}, nil, [2]int{4, 5})+
			replaced(nil, 6)-2)
	}
}
