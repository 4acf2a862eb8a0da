// Texts, slices, interfaces and results of Go: each call prints the line that ktrace has to show of its return.
package main

import (
	"errors"
	"fmt"
)

type pair struct {
	a int32
	b float64
	c string
}

//go:noinline
func parse(s string, n int) (int, error) {
	if n < 0 {
		return 0, errors.New("negative")
	}
	return len(s) + n, nil
}

//go:noinline
func list(n int) []int {
	r := []int{}
	for i := 1; i <= n; i++ {
		r = append(r, i)
	}
	return r
}

//go:noinline
func words(all []string) (first string, count int) { return all[0], len(all) }

//go:noinline
func mixed(x float64, yes bool) (float64, bool, int16) { return x * 2, !yes, 7 }

//go:noinline
func compound(n int) pair { return pair{int32(n), 1.5, "c"} }

//go:noinline
func array(n int) [2]int { return [2]int{n, n + 1} }

//go:noinline
func nothing(n int) {}

func main() {
	parse("hello", 3)
	list(3)
	list(12)
	words([]string{"one", "two"})
	mixed(1.5, true)
	compound(4)
	array(5)
	nothing(6)
	fmt.Println(`main.parse(s="hello", n=3) returned (8, nil)`)
	fmt.Println(`main.list(n=3) returned [1, 2, 3]`)
	fmt.Println(`main.list(n=12) returned [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...]`)
	fmt.Println(`main.words(all=["one", "two"]) returned {.first="one", .count=2}`)
	fmt.Println(`main.mixed(x=1.5, yes=true) returned (3, false, 7)`)
	fmt.Println(`main.compound(n=4) returned {.a=4, .b=1.5, .c="c"}`)
	fmt.Println(`main.array(n=5) returned <not known>`)
	fmt.Println(`main.nothing(n=6) returned`)
}
