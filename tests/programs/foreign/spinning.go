// Goroutines that compute, in a program that also has C, so that its threads are made by the C library.
package main

import "C"
import (
	"fmt"
	"sync"
)

//go:noinline
func spinning(n int) int {
	x := 0
	for i := 0; i < n; i++ {
		x = (x*31 + i) % 1000003
	}
	return x
}

func main() {
	var wait sync.WaitGroup
	sums := make([]int, 2)
	for i := range sums {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			for k := 0; k < 60; k++ {
				sums[i] += spinning(1000000)
			}
		}(i)
	}
	wait.Wait()
	fmt.Println(sums)
}
