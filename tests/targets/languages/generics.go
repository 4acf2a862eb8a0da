// Generic functions. Prints "NAME called N" of each.
package main

import "fmt"

type List[T any] struct{ all []T }

//go:noinline
func (l *List[T]) Push(v T) { l.all = append(l.all, v) }

//go:noinline
func Each[T any](v []T) int { return len(v) }

func main() {
	var l List[int]
	l.Push(1)
	fmt.Println("sum", Each([]int{1})+Each([]string{"a", "b"}))
	fmt.Print("main.Each called 2\nmain.(*List).Push called 1\n")
}
