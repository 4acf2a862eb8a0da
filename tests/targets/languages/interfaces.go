// Interfaces of Go: each call prints the line that ktrace has to show of it.
package main

import (
	"errors"
	"fmt"
	"os"
)

type point struct{ X, Y int }
type level int8
type circle struct {
	radius float64
	name   string
}
type square struct{ side float32 }
type holder struct{ p *point }
type pair struct {
	first  interface{}
	second error
}
type shape interface{ area() float64 }

func (c circle) area() float64  { return c.radius }
func (s *square) area() float64 { return float64(s.side) }

//go:noinline
func any(n int, v interface{}) int { return n }

//go:noinline
func drawn(n int, s shape) int { return n }

//go:noinline
func all(n int, v []interface{}) int { return n }

//go:noinline
func failed(k int) (int, error) {
	switch k {
	case 0:
		return 0, errors.New("bad luck")
	case 1:
		_, err := os.Open("/nonexistent")
		return 1, err
	case 2:
		return 2, fmt.Errorf("no %d", k)
	}
	return 3, nil
}

//go:noinline
func keep(h holder, a [2]string, s []int16, p point, c complex64, q pair) int { return len(s) }

var none *square

func main() {
	h, a, s, c := holder{&point{5, 6}}, [2]string{"a", "b"}, []int16{-1, 2}, complex64(1+2i)
	q := pair{first: uint16(7), second: errors.New("inner")}
	keep(h, a, s, point{1, 2}, c, q)
	values := []interface{}{nil, 42, "text", true, float32(1.5), -2.5, point{1, 2}, &point{3, 4}, level(-3), uint8(200),
		uintptr(9), a, s, c, q, &q, h}
	words := []string{"nil", "int(42)", `string("text")`, "bool(true)", "float32(1.5)", "float64(-2.5)", "main.point{.X=1, .Y=2}",
		"*main.point{.X=3, .Y=4}", "main.level(-3)", "uint8(200)", "uintptr(9)", `[2]string(["a", "b"])`, "[]int16([-1, 2])",
		"complex64(1 + 2i)"}
	in := fmt.Sprintf("{.first=uint16(7), .second=*errors.errorString(%p)}", q.second)
	words = append(words, "main.pair"+in, "*main.pair"+in, fmt.Sprintf("main.holder{.p=%p}", h.p))
	for i, v := range values {
		any(i, v)
		fmt.Printf("main.any(n=%d, v=%s) returned %d\n", i, words[i], i)
	}
	m, ch := map[string]int{"a": 1}, make(chan int)
	any(1, m)
	fmt.Printf("main.any(n=1, v=map[string]int(%p)) returned 1\n", m)
	any(2, ch)
	fmt.Printf("main.any(n=2, v=chan int(%p)) returned 2\n", ch)
	any(3, none)
	fmt.Println(`main.any(n=3, v=*main.square(nil)) returned 3`)
	drawn(0, circle{1.5, "round"})
	fmt.Println(`main.drawn(n=0, s=main.circle{.radius=1.5, .name="round"}) returned 0`)
	drawn(1, &square{2.5})
	fmt.Println(`main.drawn(n=1, s=*main.square{.side=2.5}) returned 1`)
	drawn(2, nil)
	fmt.Println(`main.drawn(n=2, s=nil) returned 2`)
	all(3, values[1:4])
	fmt.Println(`main.all(n=3, v=[int(42), string("text"), bool(true)]) returned 3`)
	failed(0)
	fmt.Println(`main.failed(k=0) returned (0, *errors.errorString{.s="bad luck"})`)
	failed(1)
	fmt.Println(`main.failed(k=1) returned (1, *fs.PathError{.Op="open", .Path="/nonexistent", .Err=syscall.Errno(2)})`)
	failed(2)
	fmt.Println(`main.failed(k=2) returned (2, *errors.errorString{.s="no 2"})`)
	failed(3)
	fmt.Println(`main.failed(k=3) returned (3, nil)`)
}
